// Tests that an emulator logs the values of debug() in the form of Google's emulator. The expected texts were recorded
// from that emulator.

import Foundation
import HearthServer
import Logging
import NIOConcurrencyHelpers
import Testing

@Suite("Output of debug()", .timeLimit(.minutes(1)))
struct DebugOutputTests {
  private struct LineRecorder: LogHandler {
    let lines: NIOLockedValueBox<[String]>
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.notice

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.withLockedValue { $0.append("\(event.message)") } }
  }

  private static let recorded: [(expression: String, text: String)] = [
    (
      "{'a':1,'b':2,'c':3}.diff({'b':2,'c':4,'d':1})",
      """
      map_diff_value {
        key_statuses {
          key: "a"
          value: ADDED
        }
        key_statuses {
          key: "b"
          value: UNCHANGED
        }
        key_statuses {
          key: "c"
          value: CHANGED
        }
        key_statuses {
          key: "d"
          value: REMOVED
        }
      }
      """
    ),
    (#"'é\n\t\"\'\\ \u0001'"#, #"string_value: "\303\251\n\t\"\'\\ \001""#),
    ("float('1e7')", "float_value: 1.0E7"), ("float('NaN')", "float_value: NaN"),
    ("-1.5", "float_value: -1.5"),
    ("0", "int_value: 0"), ("false", "bool_value: false"), ("null", "null_value: NULL_VALUE"),
    ("duration.value(-1500, 'ms')", "duration_value {\n  seconds: -1\n  nanos: -500000000\n}"),
    ("timestamp.value(1234)", "timestamp_value {\n  seconds: 1\n  nanos: 234000000\n}"),
    ("timestamp.value(0)", "timestamp_value {\n}"),
    ("latlng.value(-1.5, 0)", "latlng_value {\n  latitude: -1.5\n}"),
    (
      "path('/a/{x}/{y=**}')",
      """
      path_value {
        segments {
          simple: "a"
        }
        segments {
          capture {
            variable_name: "x"
          }
        }
        segments {
          glob_capture {
            variable_name: "y"
          }
        }
      }
      """
    ),
    (#"b'\x00\xff\n\"a'"#, #"bytes_value: "\000\377\n\"a""#), ("[].toSet()", "set_value {\n}"),
    (
      "{'l': [1], 'e': {}}",
      """
      map_value {
        fields {
          key: "e"
          value {
            map_value {
            }
          }
        }
        fields {
          key: "l"
          value {
            list_value {
              values {
                int_value: 1
              }
            }
          }
        }
      }
      """
    ),
  ]

  @Test("An emulator logs each value that debug() receives, also in allowed requests; inner calls come first")
  func values() async throws {
    let lines = NIOLockedValueBox<[String]>([])
    let server = HearthServer(.forTesting(), log: Logger(label: "test") { _ in LineRecorder(lines: lines) })
    try await server.start()
    do {
      let port = try #require(server.firestorePort)
      let conditions = Self.recorded.map { "debug(\($0.expression)) == 'none'" }
      let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /c/{id} { allow get: if \(conditions.joined(separator: " || ")) || true; }
            match /d/{id} { allow list: if debug(debug(resource.data.x) == 4, 'label'); }
          }
        }
        """
      try await load(rules, port)
      let reply = try await PlainRequest.send(port, "GET \(documents)/c/x")
      #expect(reply.contains("NOT_FOUND"))
      let texts = debugTexts(lines)
      #expect(
        texts.map { $0.split(separator: "\n", maxSplits: 1).last.map(String.init) }
          == Self.recorded.map(\.text))
      #expect(texts.first?.hasPrefix("debug() at line 4, column 35\n") == true)

      let filter =
        #"{"fieldFilter": {"field": {"fieldPath": "x"}, "op": "GREATER_THAN", "value": {"integerValue": "4"}}}"#
      _ = try await PlainRequest.send(
        port, "POST \(documents):runQuery",
        #"{"structuredQuery": {"from": [{"collectionId": "d"}], "where": \#(filter)}}"#)
      #expect(
        debugTexts(lines).dropFirst(texts.count) == [
          """
          debug() at line 5, column 42
          constraint_value {
            simple_constraints {
              comparator: GT
              value {
                int_value: 4
              }
            }
          }
          """
        ])
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private let documents = "/v1/projects/demo/databases/(default)/documents"

  private func debugTexts(_ lines: NIOLockedValueBox<[String]>) -> [String] {
    lines.withLockedValue { $0.filter { $0.hasPrefix("debug()") } }
  }

  private func load(_ rules: String, _ port: Int) async throws {
    let text = rules.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
      .replacingOccurrences(of: "\n", with: "\\n")
    let reply = try await PlainRequest.send(
      port, "PUT /emulator/v1/projects/demo:securityRules",
      #"{"rules": {"files": [{"name": "firestore.rules", "content": "\#(text)"}]}}"#)
    #expect(reply.hasPrefix("HTTP/1.1 200"), "\(reply)")
  }
}
