// Implements a client of the engine for tests: sends requests, and records the responses and pushes in order. `Replica`
// rebuilds values from the pushes.

import Access
import RealtimeEngine
import RealtimeModel

/// One connection and the outputs that it has received.
actor Client {
  /// Receives this client's outputs from the engine.
  private final class Inbox: RealtimeSink, RealtimeSinkGroup {
    let deliveries: AsyncStream<[RealtimeDelivery]>
    private let continuation: AsyncStream<[RealtimeDelivery]>.Continuation

    init() { (deliveries, continuation) = AsyncStream.makeStream(of: [RealtimeDelivery].self) }

    var group: any RealtimeSinkGroup { self }
    func deliver(_ delivered: [RealtimeDelivery]) { continuation.yield(delivered) }
  }

  enum Output: Sendable {
    case push(RealtimePush)
    case response(Int64, RealtimeResponse)
    case authRevoked(RealtimeError)
    case ended
  }

  nonisolated let connection: RealtimeConnection
  private(set) var received: [Output] = []
  private var waiting: [(request: Int64, continuation: CheckedContinuation<RealtimeResponse, Never>)] = []
  private var responses: [Int64: RealtimeResponse] = [:]
  private var nextRequest: Int64 = 1

  init(_ database: RealtimeDatabase, as caller: Principal = .nobody) {
    let inbox = Inbox()
    connection = database.connect(as: caller, to: inbox)
    Task { for await deliveries in inbox.deliveries { await self.record(deliveries) } }
  }

  private func record(_ deliveries: [RealtimeDelivery]) {
    for output in deliveries.flatMap(\.outputs) {
      switch output {
      case .push(let push): received.append(.push(push))
      case .response(let request, let response):
        received.append(.response(request, response))
        if let i = waiting.firstIndex(where: { $0.request == request }) {
          waiting.remove(at: i).continuation.resume(returning: response)
        } else {
          responses[request] = response
        }
      case .authRevoked(let error): received.append(.authRevoked(error))
      case .ended: received.append(.ended)
      }
    }
  }

  /// Sends a request and waits for its response.
  @discardableResult
  func call(_ send: (RealtimeConnection, Int64) -> Void) async -> RealtimeResponse {
    let request = nextRequest
    nextRequest += 1
    send(connection, request)
    return await response(to: request)
  }

  /// Sends a request without waiting.
  func send(_ send: (RealtimeConnection, Int64) -> Void) -> Int64 {
    let request = nextRequest
    nextRequest += 1
    send(connection, request)
    return request
  }

  func response(to request: Int64) async -> RealtimeResponse {
    if let response = responses.removeValue(forKey: request) { return response }
    return await withCheckedContinuation { waiting.append((request, $0)) }
  }

  /// Returns the outputs since the last call as strings: one line for each push or response.
  func drain() -> [String] {
    defer { received = [] }
    return received.map { received in
      switch received {
      case .push(let push): push.text
      case .response(let request, let response): "\(request) \(response.text)"
      case .authRevoked(let error): "ac \(error.status.rawValue)"
      case .ended: "ended"
      }
    }
  }

  /// Returns the outputs since the last call.
  func takeOutputs() -> [Output] {
    defer { received = [] }
    return received
  }

  func set(_ path: Path, _ node: Node) async -> RealtimeResponse {
    await call { $0.set(path, to: node, request: $1) }
  }
}

extension RealtimePush {
  /// The push as one line: action (`d` set, `m` merge), path, data, tag.
  var text: String {
    let tag = tag.map { " #\($0)" } ?? ""
    switch body {
    case .set(let node): return "d \(path) \(node.text)\(tag)"
    case .merge(let changes):
      let list = changes.map { "\($0.path):\($0.value.text)" }.joined(separator: ",")
      return "m \(path) {\(list)}\(tag)"
    case .rangeMerge(let ranges):
      let list = ranges.map {
        "(\($0.start?.description ?? "") \($0.end?.description ?? "")] \($0.updates.text)"
      }
      return "rm \(path) \(list.joined(separator: "; "))\(tag)"
    case .cancel(let error): return "c \(path) \(error.status.rawValue)\(tag)"
    }
  }
}

extension RealtimeResponse {
  var text: String {
    switch self {
    case .done: "ok"
    case .listening(let warnings): (["ok"] + warnings).joined(separator: " ")
    case .value(let node): "ok \(node.text)"
    case .failure(let error): error.status.rawValue
    }
  }
}

extension Node {
  /// The node as a string: JSON without quotes, priorities after a `^`.
  var text: String {
    let priority =
      switch priority {
      case .number(let number)?: "^\(RealtimeNumber(number).text)"
      case .string(let text)?: "^'\(text)'"
      default: ""
      }
    switch content {
    case .empty: return "null"
    case .leaf(.bool(let value)): return "\(value)" + priority
    case .leaf(.int(let value)): return "\(value)" + priority
    case .leaf(.double(let value)): return "\(value)" + priority
    case .leaf(.string(let value)): return "'\(value)'" + priority
    case .leaf(.deferred): return "deferred" + priority
    case .children:
      var list: [String] = []
      forEachChild { key, child in
        list.append("\(key):\(child.text)")
        return true
      }
      return "{\(list.joined(separator: ","))}" + priority
    }
  }
}

extension RealtimeNumber {
  var text: String {
    switch self {
    case .int(let value): "\(value)"
    case .double(let value): "\(value)"
    }
  }
}
