// Measures the first value of a listen, and a REST read of the same location with Foundation's JSON parser.

import FirebaseCore
import FirebaseDatabase
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Listens to one location with many children.
struct InitialListen {
  let children: Int
  let server: String

  func run() async throws {
    let name = "listen-\(children)"
    let writer = try MeasuredClient(
      name: "\(name)-writer", namespace: name, server: server, isPersistent: false)
    let list = writer.database.reference(withPath: "list")
    for start in stride(from: 0, to: children, by: 1_000) {
      let part = start..<min(start + 1_000, children)
      _ = try await list.updateChildValues(
        Dictionary(
          uniqueKeysWithValues: part.map {
            ("item\($0)", ["number": $0, "text": "some text"] as [String: Any])
          }))
    }
    _ = await writer.app.delete()
    // The first read fills the server's cache.
    _ = try await rest(name)
    let bare = try await rest(name)
    let memory = try await listen(name, isPersistent: false)
    let disk = try await listen(name, isPersistent: true)
    for (setting, time) in [("in memory", memory), ("on disk", disk)] {
      ClientBenchmarks.say(
        "| first value, processor time, \(children) children, \(setting) | \(short(bare * 1e3)) ms (REST, bare) | \(short(time * 1e3)) ms | "
          + "\(short(time / bare)) |")
    }
  }

  private func listen(_ name: String, isPersistent: Bool) async throws -> Double {
    let reader = try MeasuredClient(
      name: "\(name)-reader", namespace: name, server: server, isPersistent: isPersistent)
    let list = reader.database.reference(withPath: "list")
    let time = await processorSeconds {
      let count = await list.observeSingleEventAndPreviousSiblingKey(of: .value).0.childrenCount
      if count != children { ClientBenchmarks.say("the listen gave \(count) children") }
    }
    _ = await reader.app.delete()
    await reader.settle()
    return time
  }

  private func rest(_ name: String) async throws -> Double {
    guard let url = URL(string: "http://\(server)/list.json?ns=\(name)") else {
      throw MeasurementFailure("no URL")
    }
    return try await processorSeconds {
      let (data, _) = try await URLSession.shared.data(from: url)
      let object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
      if object?.count != children { ClientBenchmarks.say("REST gave \(object?.count ?? 0) children") }
    }
  }
}
