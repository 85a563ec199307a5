// A listen as an event stream (`text/event-stream`): what the engine tells becomes `put` and `patch` events.
//
// A value without I/O. Invariants: nothing is sent before the engine has granted the listen, so that a refusal is
// still a plain HTTP error; an event's data is one line.

import JSON
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

/// The state of one event stream.
struct EventStream {
  /// What is to be done after something the engine told.
  enum Step {
    /// Nothing.
    case nothing
    /// Answer with this error instead of a stream.
    case refuse(RESTError)
    /// Send these events; begin the stream if it has not begun. Some count in what the server holds.
    case send(ByteBuffer, counted: Bool)
    /// Send these events and end the stream.
    case finish(ByteBuffer)
  }

  let path: Path
  let query: QuerySpec
  let isExport: Bool
  private var isGranted = false
  /// The first events, until the listen is granted.
  private var held = ByteBuffer()

  init(path: Path, query: QuerySpec, isExport: Bool) {
    self.path = path
    self.query = query
    self.isExport = isExport
  }

  /// The tag under which the listen runs: a filtered one needs any.
  var tag: Int64? { query.isDefault ? nil : 1 }

  mutating func receive(_ output: RealtimeOutput) -> Step {
    switch output {
    case .push(let push):
      if case .cancel = push.body { return .finish(Self.cancel) }
      let encoded = encoded(push)
      guard let event = encoded.bytes, event.readableBytes > 0 else { return .nothing }
      if isGranted { return .send(event, counted: encoded.mustBeCounted()) }
      held.writeImmutableBuffer(event)
      return .nothing
    case .response(_, .failure(let error)): return .refuse(RESTError(error))
    case .response(_, .listening(let warnings)):
      if warnings.contains("no_index") {
        return .refuse(RESTError(.indexNotDefined(query.ordering.wireText, path: path.absolute)))
      }
      isGranted = true
      defer { held = ByteBuffer() }
      return .send(held, counted: held.readableBytes >= EncodedPush.countedBytes)
    case .response: return .nothing
    case .ended: return .finish(Self.cancel)
    }
  }

  // MARK: Events

  /// Says that the stream is alive.
  static let keepAlive = ByteBuffer(string: "event: keep-alive\ndata: null\n\n")
  /// Says that the location may not be read any more.
  static let cancel = ByteBuffer(string: "event: cancel\ndata: null\n\n")
  /// Says that the credential is not valid any more. Not JSON: readers compare the text.
  static let authRevoked = ByteBuffer(
    string: "event: auth_revoked\ndata: credential is no longer valid\n\n")

  /// What a push keeps for the streams of one path and format.
  private struct Encoded: Sendable {
    let push: EncodedPush
  }

  /// The event that tells a push; empty if its reader need not know.
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
      // Readers of plain values do not know priorities, but for the one that they asked for.
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
