// Idle Listen streams, many on a connection.

import FirestoreProtobuf
import NIOConcurrencyHelpers
import NIOCore
import SwiftProtobuf

/// The targets of many Listen streams, and the number that is current.
final class ListenLoad: Sendable {
  private struct State {
    var current = 0
    var removed = 0
    var ended: String?
    var endedCount = 0
  }

  private let state = NIOLockedValueBox(State())
  private let connections: [GRPCConnection]

  private init(_ connections: [GRPCConnection]) { self.connections = connections }

  static func connect(_ server: ChildProcess, _ setting: Setting, connections: Int) async throws -> ListenLoad
  {
    var opened: [GRPCConnection] = []
    for _ in 0..<connections {
      opened.append(try await GRPCConnection.connect(port: server.port, on: setting.group))
    }
    return ListenLoad(opened)
  }

  /// Opens one more stream on the next connection, and adds targets with these numbers. Each has a filter that
  /// no other target has and that matches nothing.
  /// - Parameter token: the credential of the stream; nil for none.
  func open(stream number: Int, targets: Range<Int>, token: String? = nil) async throws {
    let stream = try await connections[number % connections.count].open(
      path: "/google.firestore.v1.Firestore/Listen", token: token,
      onMessage: { [state] in
        // A target change: field 2 of the response. Its field 1 is 2 for REMOVE and 3 for CURRENT.
        let bytes = $0.readableBytesView
        guard let first = bytes.first, first == 0x12 else { return }
        // The length takes two bytes if the change has a cause.
        let content = bytes.dropFirst().drop { $0 >= 0x80 }.dropFirst().prefix(2)
        guard content.first == 0x08 else { return }
        if content.last == 0x03 { state.withLockedValue { $0.current += 1 } }
        if content.last == 0x02 { state.withLockedValue { $0.removed += 1 } }
      },
      onEnd: { [state] failure in
        state.withLockedValue { state in
          state.ended = failure
          state.endedCount += 1
        }
      })
    for number in targets { stream.send(try Self.request(target: number)) }
  }

  /// Waits until this number of targets is current.
  func wait(for targets: Int) async throws {
    try await waitUntil(
      "\(state.withLockedValue { $0.current }) of \(targets) targets became current", seconds: 240
    ) {
      state.withLockedValue { $0.current >= targets || $0.ended != nil }
    }
    try check()
  }

  /// Throws if a stream has ended.
  func check() throws {
    if let ended = state.withLockedValue({ $0.ended }) {
      throw BenchmarkFailure("a Listen stream ended with \(ended)")
    }
  }

  /// The number of targets that the server has removed.
  var removed: Int { state.withLockedValue { $0.removed } }

  /// The number of streams that the server has ended, and the result of the last one.
  var ended: (count: Int, result: String) {
    state.withLockedValue { ($0.endedCount, $0.ended ?? "") }
  }

  func close() async {
    for connection in connections { await connection.close() }
  }

  private static func request(target number: Int) throws -> ByteBuffer {
    let request = Google_Firestore_V1_ListenRequest.with {
      $0.database = BenchmarkDocument.database
      $0.addTarget = .with {
        $0.targetID = Int32(number + 1)
        $0.query = .with {
          $0.parent = BenchmarkDocument.parent
          $0.structuredQuery = BenchmarkDocument.query(owner: "listener-\(number)")
        }
      }
    }
    return framed(try request.serializedBytes())
  }
}
