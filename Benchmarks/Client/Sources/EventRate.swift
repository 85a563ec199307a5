// Measures how many changes a second one client receives of another, and the rate of acknowledgements without a
// receiver; and the processor time of both clients for a change.

import FirebaseCore
import FirebaseDatabase
import Foundation

/// One client writes, another one observes.
struct EventRate {
  let count: Int
  let server: String

  func run() async throws {
    let alone = try await rate("alone", isObserved: false)
    let observed = try await rate("observed", isObserved: true)
    ClientBenchmarks.say(
      "| changes of 1,000 children a second | \(short(alone.rate)) (acknowledged, no receiver) | "
        + "\(short(observed.rate)) (received) | \(short(observed.rate / alone.rate)) |")
    let (bare, full) = (alone.processor * 1e6, observed.processor * 1e6)
    ClientBenchmarks.say(
      "| processor time of a change | \(short(bare)) µs (no receiver) | \(short(full)) µs | \(short(full / bare)) |"
    )
  }

  /// - Returns: the changes a second, and the seconds of processor time for one.
  private func rate(_ name: String, isObserved: Bool) async throws -> (rate: Double, processor: Double) {
    let namespace = "events-\(name)"
    let writer = try MeasuredClient(
      name: "\(namespace)-w", namespace: namespace, server: server, isPersistent: false)
    let reader = try MeasuredClient(
      name: "\(namespace)-r", namespace: namespace, server: server, isPersistent: false)
    // Changes of one child may arrive together, so the receiver waits for the last one.
    let countdown = Countdown(isObserved ? 1 : count)
    let last = count - 1
    if isObserved {
      let list = reader.database.reference(withPath: "list")
      _ = await list.observeSingleEventAndPreviousSiblingKey(of: .value)
      for type in [DataEventType.childAdded, .childChanged] {
        list.observe(type, with: { if $0.value as? Int == last { Task { await countdown.finishOne() } } })
      }
    }
    await writer.settle()
    var processor = 0.0
    let time = await seconds {
      processor = await processorSeconds {
        for number in 0..<count {
          write(number, in: writer.database.reference(withPath: "list"), isObserved ? nil : countdown)
        }
        await countdown.wait()
      }
    }
    _ = await writer.app.delete()
    _ = await reader.app.delete()
    return (Double(count) / time, processor / Double(count))
  }

  /// In its own function, since asynchronous code selects the form that waits for the server.
  private func write(_ number: Int, in list: DatabaseReference, _ countdown: Countdown?) {
    list.child("item\(number % 1_000)").setValue(number) { _, _ in
      if let countdown { Task { await countdown.finishOne() } }
    }
  }
}
