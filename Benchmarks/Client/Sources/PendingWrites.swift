// Measures pending writes: the time to make one while others wait, and the time until the server has acknowledged it.

import FirebaseCore
import FirebaseDatabase
import Foundation

/// Counts completions.
actor Countdown {
  private var rest: Int
  private var waiter: CheckedContinuation<Void, Never>?

  init(_ count: Int) { rest = count }

  func finishOne() {
    rest -= 1
    if rest == 0 { waiter?.resume() }
  }

  func wait() async {
    guard rest > 0 else { return }
    await withCheckedContinuation { waiter = $0 }
  }
}

/// Makes writes offline, and sends them.
struct PendingWrites {
  let count: Int
  let server: String
  let isPersistent: Bool
  let isObserved: Bool

  func run() async throws {
    let name = "writes-\(count)-\(isPersistent)-\(isObserved)"
    let client = try MeasuredClient(name: name, namespace: name, server: server, isPersistent: isPersistent)
    client.database.goOffline()
    let list = client.database.reference(withPath: "list")
    if isObserved {
      list.observe(.value, with: { _ in })
      list.observe(.childAdded, with: { _ in })
    }
    await client.settle()
    let tenth = count / 10
    let countdowns = (0..<10).map { _ in Countdown(tenth) }
    var times: [Double] = []
    for (part, countdown) in countdowns.enumerated() {
      times.append(
        await processorSeconds {
          for n in 0..<tenth { write(part * tenth + n, in: list, countdown) }
          await client.settle()
        })
    }
    row("write", times, tenth)
    times = []
    client.database.goOnline()
    for countdown in countdowns { times.append(await processorSeconds { await countdown.wait() }) }
    row("acknowledge", times, tenth)
    _ = await client.app.delete()
  }

  /// In its own function, since asynchronous code selects the form that waits for the server.
  private func write(_ number: Int, in list: DatabaseReference, _ countdown: Countdown) {
    list.child("item\(number)").setValue(["number": number, "text": "some text"]) { _, _ in
      Task { await countdown.finishOne() }
    }
  }

  private func row(_ action: String, _ times: [Double], _ tenth: Int) {
    let (first, last) = (times[0] / Double(tenth) * 1e6, times[9] / Double(tenth) * 1e6)
    let setting = (isPersistent ? "on disk" : "in memory") + (isObserved ? ", two observers" : "")
    ClientBenchmarks.say(
      "| \(action), \(count) pending, \(setting) | \(short(first)) µs | \(short(last)) µs | \(short(last / first)) |"
    )
  }
}
