// A WebChannel session: the state machine of one session, without I/O. Inputs are requests, responses of the stream and
// the current time; outputs are actions.
//
// A session is a bidirectional stream over HTTP requests that can be lost, repeated or reordered. The client posts
// messages (the forward channel) and receives arrays in consecutive GET requests (the back channel).
//
// Invariants
//   1. Each message reaches the stream exactly once, in order. Each array is kept until the client acknowledges it.
//   2. At most one back channel is open. A new one replaces it, and nothing more is written to the old one.
//   3. One back channel carries no array twice, and no array that its request acknowledged. A back channel ends after a
//      complete frame, and has at least one frame.
//   4. When the stream waits for acknowledgements, the back channel ends. The client's next request acknowledges.

import NIOCore

/// The state machine of one session.
struct WebChannelSession {
  /// Identifies a back channel within its session.
  typealias BackChannelID = Int

  /// The actions that follow an input, in this order.
  struct Actions: Equatable {
    /// Frames to write to the back channel.
    var frames = ByteBuffer()
    /// Whether the back channel ends after the frames.
    var endsBackChannel = false
    /// Whether the session ends; later requests get `unknownSession`.
    var endsSession = false
  }

  private struct BackChannel {
    let id: BackChannelID
    let isStreaming: Bool
    /// The time at which the back channel ends.
    let end: NIODeadline
    /// The time of the next keep-alive frame, unless another frame is written before.
    var nextNoop: NIODeadline
    /// Bytes written to the back channel.
    var bytes = 0
  }

  private enum Phase {
    case open
    /// The stream has ended, and the client has not acknowledged its end.
    case finished(until: NIODeadline)
    case ended
  }

  private let limits: WebChannelLimits
  private var phase = Phase.open
  private var incoming: IncomingMessages
  private var outgoing = OutgoingArrays()
  private var back: BackChannel?
  private var backChannelCount = 0
  private var lastRequest: NIODeadline

  init(_ limits: WebChannelLimits, now: NIODeadline) {
    self.limits = limits
    incoming = IncomingMessages(limits)
    lastRequest = now
  }

  /// The open back channel.
  var backChannel: BackChannelID? { back?.id }

  /// Bytes of all buffered messages and arrays.
  var heldBytes: Int { incoming.heldBytes + outgoing.bytes }

  /// Whether the queued messages exceed their limit. The owner then ends the stream with an error.
  var exceedsPendingLimit: Bool { incoming.heldBytes > limits.maximumPendingBytes }

  /// Whether the stream may send more arrays.
  var canSend: Bool { outgoing.bytes < limits.maximumUnacknowledgedBytes }

  /// The response to a forward POST.
  var forwardResponse: ByteBuffer {
    WebChannelFrames.forward(
      hasBackChannel: back != nil, lastArray: outgoing.lastNumber, outstandingBytes: outgoing.bytes)
  }

  // MARK: Requests of the client

  /// Receives the messages of a POST, including the handshake.
  /// - Throws: an error for an impossible acknowledgement or message number.
  mutating func receive(
    _ messages: [ForwardBody.Message], acknowledged: Int?, now: NIODeadline
  ) throws(WebChannelError) {
    try acknowledge(acknowledged)
    lastRequest = now
    if case .open = phase { try incoming.receive(messages) }
  }

  /// Opens a back channel, which replaces the previous one.
  /// - Throws: an error for an impossible acknowledgement; `unknownSession` if the client has acknowledged everything
  ///   and the stream has ended.
  mutating func open(_ request: BackChannelRequest, now: NIODeadline) throws(WebChannelError) -> Actions {
    try acknowledge(request.acknowledged)
    if hasDeliveredEnd { throw .unknownSession }
    lastRequest = now
    backChannelCount += 1
    var lifetime = limits.maximumBackChannelLifetime
    if request.occupiesConnection { lifetime = min(lifetime, limits.maximumConnectionHold) }
    var wait = request.timeout.map { min($0, limits.keepAlive) } ?? limits.keepAlive
    if request.occupiesLastConnection {
      lifetime = min(lifetime, limits.maximumLastConnectionHold)
      wait = min(wait, limits.maximumLastConnectionHold)
    }
    back = BackChannel(
      id: backChannelCount, isStreaming: request.isStreaming,
      end: now + (request.isStreaming ? lifetime : wait),
      nextNoop: now + limits.keepAlive)
    var frames = outgoing.frames(after: request.acknowledged)
    if frames.readableBytes == 0, request.isStreaming {
      // A noop is sent first: clients wait only briefly for the first byte, to detect proxies that buffer responses.
      frames = outgoing.append(WebChannelFrames.noop)
    }
    return write(frames, now)
  }

  /// Records that a back channel disconnected.
  mutating func disconnect(_ id: BackChannelID, now: NIODeadline) {
    guard back?.id == id else { return }
    back = nil
    lastRequest = now
  }

  // MARK: Messages of the stream

  /// Removes the next message for the stream.
  mutating func nextMessage() -> ByteBuffer? { incoming.next() }

  /// Sends responses of the stream, each one JSON value.
  mutating func send(_ payloads: [ByteBuffer], now: NIODeadline) -> Actions {
    guard case .open = phase else { return Actions() }
    return append(payloads, now)
  }

  /// Sends the last response and ends the stream. Discards queued messages.
  mutating func finish(_ payload: ByteBuffer, now: NIODeadline) -> Actions {
    guard case .open = phase else { return Actions() }
    phase = .finished(until: now + limits.endAcknowledgementTimeout)
    incoming.discardAll()
    return append([payload], now)
  }

  // MARK: Time

  /// The time of the next `tick`.
  var deadline: NIODeadline {
    var deadline =
      back.map { min($0.end, $0.isStreaming ? $0.nextNoop : $0.end) } ?? lastRequest + limits.idleTimeout
    if case .finished(let end) = phase { deadline = min(deadline, end) }
    return deadline
  }

  /// Returns the actions that are due.
  mutating func tick(now: NIODeadline) -> Actions {
    if case .finished(let end) = phase, end <= now { return endSession() }
    guard let open = back else { return lastRequest + limits.idleTimeout <= now ? endSession() : Actions() }
    if open.end <= now {
      // A polling request gets a noop at its timeout, since clients treat an empty response as an error.
      return open.isStreaming ? endBackChannel(Actions(), now) : append([WebChannelFrames.noop], now)
    }
    return open.isStreaming && open.nextNoop <= now ? append([WebChannelFrames.noop], now) : Actions()
  }

  // MARK: Transitions

  /// Whether the stream has ended and the client has acknowledged its end.
  private var hasDeliveredEnd: Bool {
    if case .open = phase { return false }
    return outgoing.isEmpty
  }

  private mutating func acknowledge(_ id: Int?) throws(WebChannelError) {
    if let id { try outgoing.acknowledge(id) }
  }

  private mutating func append(_ payloads: [ByteBuffer], _ now: NIODeadline) -> Actions {
    var frames = ByteBuffer()
    for payload in payloads { frames.writeImmutableBuffer(outgoing.append(payload)) }
    return write(frames, now)
  }

  /// Writes frames to the back channel, if one is open, and ends a back channel that is full or finished.
  private mutating func write(_ frames: ByteBuffer, _ now: NIODeadline) -> Actions {
    guard var open = back, frames.readableBytes > 0 else { return Actions() }
    open.bytes += frames.readableBytes
    open.nextNoop = now + limits.keepAlive
    back = open
    let actions = Actions(frames: frames)
    let isFull = open.bytes >= limits.maximumBackChannelBytes || !canSend
    var isFinished = false
    if case .finished = phase { isFinished = true }
    return !open.isStreaming || isFull || isFinished ? endBackChannel(actions, now) : actions
  }

  private mutating func endBackChannel(_ actions: Actions, _ now: NIODeadline) -> Actions {
    back = nil
    lastRequest = now
    var actions = actions
    actions.endsBackChannel = true
    return actions
  }

  private mutating func endSession() -> Actions {
    phase = .ended
    var actions = Actions(endsSession: true)
    if back != nil {
      back = nil
      actions.endsBackChannel = true
    }
    return actions
  }
}
