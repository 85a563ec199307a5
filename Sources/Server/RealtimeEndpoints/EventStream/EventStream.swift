// An event stream converts the engine's outputs for one listen to `put` and `patch` events
// (`text/event-stream`). EventStreamConnection sends them.
//
// A listen is a subscription to a location. A push notifies it of a change.
//
// Invariants
//   1. No event is sent before the engine confirms the listen. A rejected listen can therefore be answered
//      with an HTTP error status.
//   2. The data of an event is one line.

import JSON
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

/// The state of one event stream.
struct EventStream {
  /// The next action of the connection after one output of the engine.
  enum Step {
    /// Send nothing.
    case nothing
    /// Respond with this error instead of a stream.
    case reject(RESTError)
    /// Send these events, and begin the stream if it has not begun. If `counted`, the server's memory budget counts
    /// their bytes until they are written.
    case send(ByteBuffer, counted: Bool)
    /// Send these events and end the stream.
    case finish(ByteBuffer)
  }

  let path: Path
  let query: QuerySpec
  let isExport: Bool
  private var isGranted = false
  /// Events that wait until the engine confirms the listen.
  private var bufferedEvents = ByteBuffer()

  init(path: Path, query: QuerySpec, isExport: Bool) {
    self.path = path
    self.query = query
    self.isExport = isExport
  }

  /// The tag of the listen. The engine requires a tag for a filtered listen; here its value has no meaning.
  var tag: Int64? { query.isDefault ? nil : 1 }

  mutating func receive(_ output: RealtimeOutput) -> Step {
    switch output {
    case .push(let push):
      if case .cancel = push.body { return .finish(Self.cancel) }
      let encoded = encoded(push)
      guard let event = encoded.bytes, event.readableBytes > 0 else { return .nothing }
      if isGranted { return .send(event, counted: encoded.countOnce()) }
      bufferedEvents.writeImmutableBuffer(event)
      return .nothing
    case .response(_, .failure(let error)): return .reject(RESTError(error))
    case .response(_, .listening(let warnings)):
      if warnings.contains("no_index") {
        return .reject(RESTError(.indexNotDefined(query.ordering.wireText, path: path.absolute)))
      }
      isGranted = true
      defer { bufferedEvents = ByteBuffer() }
      return .send(bufferedEvents, counted: bufferedEvents.readableBytes >= EncodedPush.minimumCountedBytes)
    case .response: return .nothing
    case .authRevoked(let error): return isGranted ? .finish(Self.authRevoked) : .reject(RESTError(error))
    case .ended: return .finish(Self.cancel)
    }
  }

  // MARK: Events

  /// The event that keeps an idle stream open.
  static let keepAlive = ByteBuffer(string: "event: keep-alive\ndata: null\n\n")
  /// The event for a location that may no longer be read.
  static let cancel = ByteBuffer(string: "event: cancel\ndata: null\n\n")
  /// The event for a credential that is no longer valid. The data is not JSON: clients compare the string.
  static let authRevoked = ByteBuffer(
    string: "event: auth_revoked\ndata: credential is no longer valid\n\n")

  /// The encoded form of a push, shared by all streams of the same path and format.
  private struct Encoded: Sendable {
    let push: EncodedPush
  }

  /// The event for a push; empty if the change is not visible in this stream.
  func encoded(_ push: RealtimePush) -> EncodedPush {
    let variant = path.count * 2 + (isExport ? 1 : 0)
    return push.encoded(as: Encoded.self, variant: variant) { push in
      Encoded(push: EncodedPush(encode(push)))
    }.push
  }

  private func encode(_ push: RealtimePush) -> ByteBuffer {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("path")
    writer.string(Path(keys: Array(push.path.keys.dropFirst(path.count))).absolute)
    writer.key("data")
    let format: NodeFormat = isExport ? .export : .plain
    let name: String
    switch push.body {
    case .set(let node):
      // A stream of plain values contains no priorities, unless its path is a priority.
      if push.path.isPriority, !isExport, !path.isPriority { return ByteBuffer() }
      name = "put"
      writer.node(node, format)
    case .merge(let children):
      let shown = isExport ? children : children.filter { !$0.path.isPriority }
      if shown.isEmpty { return ByteBuffer() }
      name = "patch"
      writer.beginObject()
      for (path, node) in shown {
        writer.key(path.description)
        writer.node(node, format)
      }
      writer.endObject()
    case .rangeMerge, .cancel: return ByteBuffer()
    }
    writer.endObject()
    var event = ByteBuffer()
    event.reserveCapacity(writer.bytes.count + 32)
    event.writeString("event: \(name)\ndata: ")
    event.writeBytes(writer.bytes)
    event.writeString("\n\n")
    return event
  }
}
