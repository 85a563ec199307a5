// One HTTP request and its response: the interface by which a service responds. `HTTPExchange` is confined to the event
// loop of its connection; `HTTPResponder` is its handle for other threads.
//
// Invariants
//   1. An exchange gets one response: complete, or a stream that begins once and ends once. Later calls have no effect.
//   2. When the exchange ends, for any reason, its tasks are cancelled, waiting senders resume, and the actions
//      registered with `onEnd` run exactly once.
//   3. A task that sends a streamed response waits while the client does not read.

package import NIOCore
package import NIOHTTP1

/// The side of the connection that writes responses. Called on the event loop.
protocol HTTPExchangeOutput: AnyObject {
  var channel: (any Channel)? { get }
  var isWritable: Bool { get }
  var isHTTP2: Bool { get }
  var method: HTTPMethod { get }
  var localAddress: SocketAddress? { get }
  var remoteAddress: SocketAddress? { get }
  /// Writes a complete response.
  func respond(_ response: HTTPResponse)
  /// Begins a response whose length is unknown.
  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders)
  /// Begins an event stream: a response that lasts until either side ends it. The connection closes after it.
  func beginEventStream(_ headers: HTTPHeaders)
  /// Writes and flushes a part of a body.
  func write(_ bytes: ByteBuffer)
  /// Writes a part of an event stream, without a flush. `promise` completes when the client accepted it.
  func writeEvent(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?)
  func finish()
  /// Closes the connection or stream, so that the client does not mistake the response for complete.
  func abort()
  /// Switches the connection to another protocol.
  func upgrade(_ headers: HTTPHeaders, to handlers: (ChannelPipeline.SynchronousOperations) throws -> Void)
}

/// The state of one exchange.
package final class HTTPExchange {
  private enum Phase {
    /// The service has not responded.
    case waiting
    case streaming
    case ended
  }

  package let eventLoop: any EventLoop
  let localAddress: SocketAddress?
  /// The address of the connection's other end.
  package let remoteAddress: SocketAddress?
  package let isHTTP2: Bool
  private let memory: MemoryReservation
  /// The memory of the query results that the connection's streams hold.
  let pageMemory: PageMemory
  private var phase = Phase.waiting
  private var output: (any HTTPExchangeOutput)?
  private var endsWithPeer = false
  private var cancelWaiting: (() -> Bool)?
  private var tasks: [Task<Void, Never>] = []
  private var writabilityWaiters: [CheckedContinuation<Void, any Error>] = []
  private var writabilityActions: [() -> Void] = []
  private var endActions: [() -> Void] = []
  private var drainActions: [() -> Void] = []

  init(
    _ output: any HTTPExchangeOutput, _ memory: MemoryReservation, _ pageMemory: PageMemory,
    on eventLoop: any EventLoop
  ) {
    self.output = output
    self.memory = memory
    self.pageMemory = pageMemory
    self.eventLoop = eventLoop
    isHTTP2 = output.isHTTP2
    localAddress = output.localAddress
    remoteAddress = output.remoteAddress
  }

  /// Whether the exchange is over.
  package var isOver: Bool { if case .ended = phase { true } else { false } }

  /// The channel of the connection or HTTP/2 stream; nil after the end.
  package var channel: (any Channel)? { output?.channel }

  /// Whether the channel accepts more bytes: the client reads as fast as the response is written.
  var isWritable: Bool { output?.isWritable ?? false }

  // MARK: Responses

  /// Sends a response. A response with a `rest` is sent as the client reads it.
  package func respond(_ response: HTTPResponse) {
    guard case .waiting = phase, let output else { return }
    // If the server lacks memory for the response to a GET, `output.respond` replaces it by an error.
    let fits = output.method != .GET || memory.hasRoom(for: response.body.readableBytes)
    guard let rest = response.rest, output.method != .HEAD, fits else {
      output.respond(response)
      return end()
    }
    begin(response.status, response.headers)
    let responder = HTTPResponder(self)
    start { await responder.send(response.body, rest) }
  }

  /// Begins a response whose parts follow. `finish()` ends it.
  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    guard case .waiting = phase else { return }
    phase = .streaming
    output?.begin(status, headers)
  }

  /// Begins an event stream, whose parts `writeEvent` sends.
  package func beginEventStream(_ headers: HTTPHeaders) {
    guard case .waiting = phase else { return }
    phase = .streaming
    output?.beginEventStream(headers)
  }

  /// Sends a part of a body. Returns whether the client can accept more.
  /// - Parameter isOptional: whether the part may be left out: if the server has no memory for it, the call sends nothing and
  ///   throws.
  /// - Throws: `CancellationError` after the end of the exchange; ``HTTPRequestFailure/outOfMemory(_:)``.
  func send(_ bytes: ByteBuffer, isOptional: Bool = false) throws -> Bool {
    guard case .streaming = phase, let output else { throw CancellationError() }
    guard !isOptional || memory.hasRoom(for: bytes.readableBytes) else {
      throw HTTPRequestFailure.outOfMemory(memory.budget.refusal)
    }
    output.write(bytes)
    return output.isWritable
  }

  /// Sends a part of a body, for a sender that knows by other means that the client can accept it.
  func write(_ bytes: ByteBuffer) {
    if case .streaming = phase { output?.write(bytes) }
  }

  /// Writes a part of an event stream, without a flush.
  package func writeEvent(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
    guard case .streaming = phase, let output else { return promise?.fail(CancellationError()) ?? () }
    output.writeEvent(bytes, promise)
  }

  /// Resumes `continuation` when the client can accept more.
  func waitUntilWritable(_ continuation: CheckedContinuation<Void, any Error>) {
    guard case .streaming = phase, let output else {
      return continuation.resume(throwing: CancellationError())
    }
    if output.isWritable { continuation.resume() } else { writabilityWaiters.append(continuation) }
  }

  /// Ends a response that was begun.
  func finish() {
    guard case .streaming = phase, let output else { return }
    output.finish()
    end()
  }

  /// Ends a response that its service will not continue. If the client reads as fast as the response is written, the
  /// response ends regularly; otherwise the connection or stream closes.
  package func finishOrAbort() {
    guard let output else { return }
    if case .streaming = phase, output.isWritable { finish() } else { abort() }
  }

  /// Closes the connection or stream, so that the client does not mistake the response for complete.
  package func abort() {
    guard let output else { return }
    output.abort()
    end()
  }

  /// Switches the connection to another protocol; the exchange ends. HTTP/1.1 only.
  package func upgrade(
    _ headers: HTTPHeaders, to handlers: (ChannelPipeline.SynchronousOperations) throws -> Void
  ) {
    guard case .waiting = phase, let output else { return }
    precondition(!isHTTP2, "invariant: only HTTP/1.1 connections are upgraded")
    end()
    output.upgrade(headers, to: handlers)
  }

  // MARK: Lifetime

  /// Makes the client's half-close end the exchange. Services use it for responses that last until the client leaves.
  package func endWithPeer() { endsWithPeer = true }

  /// Registers a function that runs when the client half-closes the connection. It returns true if it
  /// cancelled the request before its work began; the exchange then ends without a response.
  package func onHalfClosure(_ cancelIfWaiting: @escaping () -> Bool) { cancelWaiting = cancelIfWaiting }

  /// Called when the client half-closes the connection. Returns whether the response is no longer needed.
  func peerHalfClosed() -> Bool { endsWithPeer || cancelWaiting?() == true }

  /// Runs an operation off the event loop. The end of the exchange cancels it.
  func start(_ operation: @escaping @Sendable () async -> Void) {
    if case .ended = phase { return }
    tasks.append(RequestTasks.start(operation))
  }

  /// Runs `action` at the end of the exchange; immediately if it has ended.
  package func onEnd(_ action: @escaping () -> Void) {
    if case .ended = phase { action() } else { endActions.append(action) }
  }

  /// Runs `action` when the port begins to drain. A response without an end, such as an event stream, must end then.
  package func onDrain(_ action: @escaping () -> Void) { drainActions.append(action) }

  /// Runs `action` whenever the client reads again after a pause.
  package func onWritable(_ action: @escaping () -> Void) { writabilityActions.append(action) }

  /// Called when the client reads again after a pause.
  func becameWritable() {
    let waiters = writabilityWaiters
    writabilityWaiters = []
    for waiter in waiters { waiter.resume() }
    for action in writabilityActions { action() }
  }

  /// Called when the port begins to drain.
  func drain() {
    let actions = drainActions
    drainActions = []
    for action in actions { action() }
  }

  /// Ends the exchange, for any reason.
  func end() {
    if case .ended = phase { return }
    phase = .ended
    output = nil
    cancelWaiting = nil
    for task in tasks { task.cancel() }
    tasks = []
    let waiters = writabilityWaiters
    writabilityWaiters = []
    for waiter in waiters { waiter.resume(throwing: CancellationError()) }
    let actions = endActions
    endActions = []
    drainActions = []
    writabilityActions = []
    for action in actions { action() }
  }
}

/// A handle on an exchange for any task or thread.
package final class HTTPResponder: Sendable {
  /// The event loop of the connection.
  package let eventLoop: any EventLoop
  /// The address that the client connected to.
  package let localAddress: SocketAddress?
  /// The memory of the query results that the connection's streams hold.
  package let pageMemory: PageMemory
  /// The address of the connection's other end.
  package let remoteAddress: SocketAddress?
  private let exchange: NIOLoopBound<HTTPExchange>

  package init(_ exchange: HTTPExchange) {
    eventLoop = exchange.eventLoop
    localAddress = exchange.localAddress
    pageMemory = exchange.pageMemory
    remoteAddress = exchange.remoteAddress
    self.exchange = NIOLoopBound(exchange, eventLoop: exchange.eventLoop)
  }

  /// Sends a response. A response with a `rest` is sent as the client reads it.
  package func respond(_ response: HTTPResponse) { onLoop { $0.respond(response) } }

  /// See ``HTTPExchange/endWithPeer()``.
  package func endWithPeer() { onLoop { $0.endWithPeer() } }

  /// Begins a response. ``send(_:)`` adds to its body, ``finish()`` ends it.
  package func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    onLoop { $0.begin(status, headers) }
  }

  /// Sends and flushes a part of the body. Returns when the client can accept more.
  /// - Throws: See ``HTTPExchange/send(_:isOptional:)``.
  package func send(_ bytes: ByteBuffer, isOptional: Bool = false) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      onLoop { exchange in
        do {
          if try exchange.send(bytes, isOptional: isOptional) {
            continuation.resume()
          } else {
            exchange.waitUntilWritable(continuation)
          }
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }

  /// Sends a body in parts. Each part waits until the client has accepted the previous one.
  fileprivate func send(_ first: ByteBuffer, _ rest: any HTTPBodySource) async {
    do {
      try await send(first)
      while let part = try await rest.next() { try await send(part, isOptional: true) }
      finish()
    } catch {
      if error is HTTPRequestFailure { rest.outOfMemory() }
      // The client must not mistake the response for complete.
      abort()
    }
  }

  /// Sends and flushes a part of the body without waiting. See ``HTTPExchange/write(_:)``.
  package func write(_ bytes: ByteBuffer) { onLoop { $0.write(bytes) } }

  /// See ``HTTPExchange/finishOrAbort()``.
  package func finishOrAbort() { onLoop { $0.finishOrAbort() } }

  /// Ends the body.
  package func finish() { onLoop { $0.finish() } }

  /// See ``HTTPExchange/abort()``.
  func abort() { onLoop { $0.abort() } }

  /// Runs an operation off the event loop. The end of the exchange cancels it.
  package func start(_ operation: @escaping @Sendable () async -> Void) { onLoop { $0.start(operation) } }

  /// Runs `action` on the event loop at the end of the exchange; immediately if it has ended.
  package func onEnd(_ action: @escaping @Sendable () -> Void) { onLoop { $0.onEnd(action) } }

  /// Runs `action` on the event loop when the port drains.
  package func onDrain(_ action: @escaping @Sendable () -> Void) { onLoop { $0.onDrain(action) } }

  /// Runs `body` with the exchange on its event loop: immediately if the caller is already on it.
  package func onLoop(_ body: @escaping @Sendable (HTTPExchange) -> Void) {
    if eventLoop.inEventLoop {
      body(exchange.value)
    } else {
      eventLoop.execute { [exchange] in body(exchange.value) }
    }
  }
}
