// Tests of limits files: the accepted contents, and the error messages for all other contents.

import FirestoreEngine
import FirestoreModel
import Foundation
import RealtimeModel
import Testing

@testable import HearthServer

@Suite("Limits files")
struct LimitsJSONTests {
  private func read(_ text: String) throws(HearthError) -> ServerLimits {
    try LimitsJSON.read(Array(text.utf8), path: "limits.json")
  }

  private func error(_ text: String) -> String {
    do throws(HearthError) {
      _ = try read(text)
      return ""
    } catch {
      return error.description
    }
  }

  @Test("A limits file raises only the limits that it names, and may contain comments")
  func raisedLimits() throws {
    let limits = try read(
      """
      {
        // Larger documents.
        "firestore": {"documentBytes": 4194304, "disjunctions": 100, "transactionSeconds": 600},
        "realtime": {"depth": 64, "socketWriteBytes": 33554432}
      }
      """)
    var expected = ServerLimits()
    expected.firestore.data.documentBytes = 4_194_304
    expected.firestore.data.disjunctions = 100
    expected.firestore.transactionTimeoutSeconds = 600
    expected.realtime.depth = 64
    expected.realtime.socketWriteBytes = 32 << 20
    #expect(limits == expected)
    #expect(try read("{}") == ServerLimits())
    #expect(
      limits.raised == [
        "firestore.documentBytes=4194304", "firestore.disjunctions=100", "firestore.transactionSeconds=600",
        "realtime.depth=64", "realtime.socketWriteBytes=33554432",
      ])
  }

  @Test(
    "Every limit accepts values from its default to its ceiling (the highest value), and no others",
    arguments: 0..<2)
  func bounds(side: Int) throws {
    for limit in ServerLimits.adjustable {
      func file(_ value: Int) -> String {
        // Resume tokens need history, so raising their validity requires a longer history window.
        let history = limit.name == "resumeSeconds" ? #""historySeconds": 604800, "# : ""
        return #"{"\#(limit.product)": {\#(history)"\#(limit.name)": \#(value)}}"#
      }
      #expect(limit.ceiling > limit.standard, "\(limit.fullName)")
      let value = side == 0 ? limit.standard : limit.ceiling
      #expect(try read(file(value))[keyPath: limit.path] == value, "\(limit.fullName)")
      let beyond = side == 0 ? limit.standard - 1 : limit.ceiling + 1
      let message = error(file(beyond))
      #expect(message.contains("\(limit.fullName) is \(beyond)"), "\(message)")
      #expect(message.contains("it may be \(limit.standard) to \(limit.ceiling)"), "\(message)")
      #expect(side == 0 || message.hasSuffix(", since \(limit.reason)."), "\(message)")
    }
  }

  @Test("Invalid limits files are rejected with the position and the required change")
  func invalidContents() {
    #expect(
      error(#"{"firestore": {"documentBytes": 1000}}"#)
        == "limits.json:1:33: firestore.documentBytes is 1000, below the product's own limit: it may be 1048576 to 10485760."
    )
    #expect(
      error("{\"realtime\":\n  {\"depth\": 101}}")
        == "limits.json:2:13: realtime.depth is 101: it may be 32 to 100, since JSON is read to 128 levels, those of the "
        + "message around it included.")
    #expect(
      error(#"{"realtime": {"deep": 40}}"#)
        == "limits.json:1:23: realtime.deep is not a limit that can be raised; these can: depth, keyBytes, "
        + "listensPerConnection, onDisconnectsPerConnection, ordersPerLocation, queuedOutputBytes, readSeconds, responseBytes, "
        + "restWriteBytes, socketWriteBytes, stringBytes.")
    #expect(error(#"{"firestore": {"resourceIDBytes": 2000}}"#).contains("these can: aggregations, "))
    #expect(
      error(#"{"storage": {}}"#)
        == "limits.json:1:13: storage is not known; a limits file has firestore and realtime.")
    for value in ["1.5", "\"64\"", "true", "[]", "{}", "null", "1e300", "-1e300"] {
      #expect(
        error("{\"realtime\": {\"depth\": \(value)}}")
          == "limits.json:1:24: realtime.depth must be a whole number, 32 to 100.", "\(value)")
    }
    #expect(
      error(#"{"realtime": {"depth": 40, "depth": 41}}"#)
        == "limits.json:1:37: the member 'depth' occurs twice in its object. Remove one of them.")
    #expect(
      error(#"{"firestore": {"resumeSeconds": 7200}}"#)
        == "limits.json: The limit firestore.resumeSeconds is 7200, and firestore.historySeconds 3600: no token is good for "
        + "longer than history is kept. Raise historySeconds, too.")
    #expect(error("[]") == "limits.json:1:1: the file must be an object.")
    #expect(error(#"{"firestore": 7}"#) == "limits.json:1:15: firestore must be an object.")
    #expect(error("{").hasPrefix("limits.json:1:2: "))
  }

  @Test("docs/limits.md lists every limit with its default and its ceiling, and no other")
  func documentedLimits() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "../../docs/limits.md")
    var rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter {
      $0.hasPrefix("| `") && !$0.hasPrefix("| `tiny`")
    }
    for limit in ServerLimits.adjustable {
      let start = "| `\(limit.name)` | \(limit.standard) | \(limit.ceiling) | "
      let row = rows.firstIndex { $0.hasPrefix(start) }
      #expect(row != nil, "\(limit.fullName)")
      if let row { rows.remove(at: row) }
    }
    #expect(rows.isEmpty)
  }

  @Test("Limits that a program sets directly in the configuration have the same bounds")
  func boundsInProcess() async throws {
    var configuration = HearthConfiguration.forTesting()
    configuration.limits.realtime.depth = 1_000
    let server = HearthServer(configuration)
    do throws(HearthError) {
      try await server.start()
      Issue.record("it started")
      await server.stop()
    } catch {
      #expect(
        error.description
          == "The limit realtime.depth is 1000: it may be 32 to 100, since JSON is read to 128 levels, those of the message "
          + "around it included.")
    }
  }

  @Test("The limits file is named by flag or variable, and must exist")
  func sources() throws {
    func resolve(_ flag: String?, _ environment: [String: String] = [:]) throws(HearthError) -> ServerLimits {
      var flags = ServeFlags()
      flags.ephemeral = true
      flags.limits = flag
      return try HearthConfiguration.resolve(flags, environment: environment) { path in
        switch path {
        case "a.json": Array(#"{"realtime": {"depth": 40}}"#.utf8)
        case "b.json": Array(#"{"realtime": {"depth": 50}}"#.utf8)
        default: nil
        }
      }.limits
    }
    #expect(try resolve(nil) == ServerLimits())
    #expect(try resolve("a.json").realtime.depth == 40)
    #expect(try resolve(nil, ["HEARTH_LIMITS": "b.json"]).realtime.depth == 50)
    #expect(try resolve("a.json", ["HEARTH_LIMITS": "b.json"]).realtime.depth == 40)
    #expect(
      throws: HearthError("The limits file c.json does not exist (--limits, or HEARTH_LIMITS).")
    ) { try resolve("c.json") }
  }
}
