// One WebChannel session as a value: what a request, an answer of the stream or the passing of time lead to.
//
// A session is a conversation over requests that may be lost, repeated or overtaken. Its client posts messages (the
// forward channel) and waits for arrays in one GET after the other (the back channel).
//
// Invariants
//   1. Each message reaches the stream once, in order; each array is kept until the client acknowledges it.
//   2. There is at most one back channel; a newer one replaces it, and nothing is written to the older one any more.
//   3. On a back channel no array is written twice, and none that its request acknowledges. It ends behind a whole
//      frame, and never without one.
//   4. When the stream waits for room, the back channel is about to end, so that the next one acknowledges.

import NIOCore

struct WebChannelSession {
  /// Tells the back channels of a session apart.
  typealias BackChannelID = Int

  /// What is to be done, in this order.
  struct Steps: Equatable {
    /// For the back channel.
    var frames = ByteBuffer()
    /// Whether the back channel ends behind the frames.
    var endsBackChannel = false
    /// Whether the session is over: nobody will hear of it any more.
    var isOver = false
  }

  private struct BackChannel {
    let id: BackChannelID
    let isStreaming: Bool
    /// When it ends, and when it is to break its silence.
    let end: NIODeadline
    var noop: NIODeadline
    /// Bytes written on it.
    var bytes = 0
  }

  private enum Phase {
    case open
    /// The stream has ended, and its client has to hear of it.
    case finished(until: NIODeadline)
    case over
  }

  private let limits: WebChannelLimits
  private var phase = Phase.open
  private var incoming: IncomingMessages
  private var outgoing = OutgoingArrays()
  private var back: BackChannel?
  private var backChannels = 0
  private var lastRequest: NIODeadline

  init(_ limits: WebChannelLimits, now: NIODeadline) {
    self.limits = limits
    incoming = IncomingMessages(limits)
    lastRequest = now
  }

  /// The back channel that is open.
  var backChannel: BackChannelID? { back?.id }

  /// Bytes that the session keeps.
  var heldBytes: Int { incoming.heldBytes + outgoing.bytes }

  /// Whether more messages wait for the stream than the session may hold: it has to finish.
  var isOverwhelmed: Bool { incoming.heldBytes > limits.maximumWaitingBytes }

  /// Whether the stream may go on.
  var hasRoom: Bool { outgoing.bytes < limits.maximumRetainedBytes }

  /// The answer to a forward POST.
  var forwardAnswer: ByteBuffer {
    WebChannelFrames.forward(
      hasBackChannel: back != nil, lastArray: outgoing.last, outstandingBytes: outgoing.bytes)
  }

  // MARK: The client

  /// Takes the messages of a POST, the handshake's included.
  mutating func receive(
    _ messages: [ForwardBody.Message], acknowledged: Int?, now: NIODeadline
  ) throws(WebChannelRefusal) {
    try acknowledge(acknowledged)
    lastRequest = now
    if case .open = phase { try incoming.receive(messages) }
  }

  /// Takes a request for answers, which replaces the one before it.
  mutating func open(_ request: BackChannelRequest, now: NIODeadline) throws(WebChannelRefusal) -> Steps {
    try acknowledge(request.acknowledged)
    if hasNothingToSay { throw .unknownSession }
    lastRequest = now
    backChannels += 1
    let wait = request.timeout.map { min($0, limits.keepAlive) } ?? limits.keepAlive
    back = BackChannel(
      id: backChannels, isStreaming: request.isStreaming,
      end: now + (request.isStreaming ? limits.backChannelLife : wait), noop: now + limits.keepAlive)
    var frames = outgoing.frames(after: request.acknowledged)
    if frames.readableBytes == 0, request.isStreaming {
      // Whoever waits for the first byte, to see whether a proxy withholds it, waits a few milliseconds.
      frames = outgoing.append(WebChannelFrames.noop)
    }
    return write(frames, now)
  }

  /// The back channel was cut.
  mutating func lose(_ id: BackChannelID, now: NIODeadline) {
    guard back?.id == id else { return }
    back = nil
    lastRequest = now
  }

  // MARK: The stream

  /// Takes out the next message for the stream.
  mutating func nextMessage() -> ByteBuffer? { incoming.next() }

  /// Takes answers, each one JSON value.
  mutating func send(_ payloads: [ByteBuffer], now: NIODeadline) -> Steps {
    guard case .open = phase else { return Steps() }
    return append(payloads, now)
  }

  /// Takes the last answer.
  mutating func finish(_ payload: ByteBuffer, now: NIODeadline) -> Steps {
    guard case .open = phase else { return Steps() }
    phase = .finished(until: now + limits.farewellTimeout)
    incoming.close()
    return append([payload], now)
  }

  // MARK: Time

  /// When `tick` is to be called next.
  var deadline: NIODeadline {
    var deadline =
      back.map { min($0.end, $0.isStreaming ? $0.noop : $0.end) } ?? lastRequest + limits.idleTimeout
    if case .finished(let end) = phase { deadline = min(deadline, end) }
    return deadline
  }

  /// What is due.
  mutating func tick(now: NIODeadline) -> Steps {
    if case .finished(let end) = phase, end <= now { return over() }
    guard let open = back else { return lastRequest + limits.idleTimeout <= now ? over() : Steps() }
    if open.end <= now {
      // A request that waited in vain gets a word, since an empty answer is an error.
      return open.isStreaming ? endBackChannel(Steps(), now) : append([WebChannelFrames.noop], now)
    }
    return open.isStreaming && open.noop <= now ? append([WebChannelFrames.noop], now) : Steps()
  }

  // MARK: Parts

  /// Whether the stream has ended, and its client has heard of it.
  private var hasNothingToSay: Bool {
    if case .open = phase { return false }
    return outgoing.isEmpty
  }

  private mutating func acknowledge(_ id: Int?) throws(WebChannelRefusal) {
    if let id { try outgoing.acknowledge(id) }
  }

  private mutating func append(_ payloads: [ByteBuffer], _ now: NIODeadline) -> Steps {
    var frames = ByteBuffer()
    for payload in payloads { frames.writeImmutableBuffer(outgoing.append(payload)) }
    return write(frames, now)
  }

  /// Writes frames, if there is somewhere to write them to.
  private mutating func write(_ frames: ByteBuffer, _ now: NIODeadline) -> Steps {
    guard var open = back, frames.readableBytes > 0 else { return Steps() }
    open.bytes += frames.readableBytes
    open.noop = now + limits.keepAlive
    back = open
    let steps = Steps(frames: frames)
    let isFull = open.bytes >= limits.backChannelBytes || !hasRoom
    var isFinished = false
    if case .finished = phase { isFinished = true }
    return !open.isStreaming || isFull || isFinished ? endBackChannel(steps, now) : steps
  }

  private mutating func endBackChannel(_ steps: Steps, _ now: NIODeadline) -> Steps {
    back = nil
    lastRequest = now
    var steps = steps
    steps.endsBackChannel = true
    return steps
  }

  private mutating func over() -> Steps {
    phase = .over
    var steps = Steps(isOver: true)
    if back != nil {
      back = nil
      steps.endsBackChannel = true
    }
    return steps
  }
}
