// One request over plain HTTP on the Firestore port and its answer: the request as it arrived, and the side that
// answers it.
//
// Invariants
//   1. An exchange is answered once: whole, or as a stream that begins once and ends once. What is said to one that is
//      over goes nowhere.
//   2. However it ends, its task is cancelled, its waiters are resumed and its end is told, exactly once.
//   3. A sender of a stream waits while the peer does not read.

import NIOCore
import NIOHTTP1

/// A request that has arrived whole.
struct HTTPRequest: Sendable {
  var head: HTTPRequestHead
  var target: RequestTarget
  var body = ByteBuffer()
}

/// A whole answer.
struct HTTPResponse: Sendable {
  var status: HTTPResponseStatus
  var headers: HTTPHeaders = [:]
  var body = ByteBuffer()
}

/// What is served over plain HTTP on a port.
protocol PlainHTTPService: Sendable {
  /// Serves one request. Called on the event loop of its connection.
  func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: FirestoreHTTPConnection)
  /// The answer to a request that is refused by its head alone, before its body is kept; nil for those that are served.
  func refusal(of head: HTTPRequestHead) -> HTTPResponse?
}

/// What the connection does for an exchange; all of it on its event loop.
protocol HTTPExchangeOutput: AnyObject {
  func write(_ answer: HTTPResponse)
  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders)
  func write(_ bytes: ByteBuffer)
  func finish()
  /// Cuts the connection or stream, so that what was said cannot be taken for whole.
  func abort()
  var isWritable: Bool { get }
  var localAddress: SocketAddress? { get }
}

/// One request's state on its event loop.
final class HTTPExchange {
  private enum Phase {
    case waiting, streaming, over
  }

  let eventLoop: any EventLoop
  let localAddress: SocketAddress?
  /// Whether the answer goes on until somebody ends it, as the end of what the peer sends does, too.
  private(set) var endsWithPeer = false
  private var phase = Phase.waiting
  private var output: (any HTTPExchangeOutput)?
  private var tasks: [Task<Void, Never>] = []
  private var waiters: [CheckedContinuation<Void, any Error>] = []
  private var endActions: [@Sendable () -> Void] = []
  private var drainActions: [@Sendable () -> Void] = []

  init(_ output: any HTTPExchangeOutput, on eventLoop: any EventLoop) {
    self.output = output
    self.eventLoop = eventLoop
    localAddress = output.localAddress
  }

  func answer(_ answer: HTTPResponse) {
    guard case .waiting = phase, let output else { return }
    output.write(answer)
    end()
  }

  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    guard case .waiting = phase else { return }
    phase = .streaming
    output?.begin(status, headers)
  }

  /// Whether the peer can take more; throws once it is gone.
  func send(_ bytes: ByteBuffer) throws -> Bool {
    guard case .streaming = phase, let output else { throw CancellationError() }
    output.write(bytes)
    return output.isWritable
  }

  func waitUntilWritable(_ continuation: CheckedContinuation<Void, any Error>) {
    guard case .streaming = phase, let output else {
      return continuation.resume(throwing: CancellationError())
    }
    if output.isWritable { continuation.resume() } else { waiters.append(continuation) }
  }

  func becameWritable() {
    let resumed = waiters
    waiters = []
    for waiter in resumed { waiter.resume() }
  }

  func finish() {
    guard case .streaming = phase, let output else { return }
    output.finish()
    end()
  }

  func abort() {
    guard let output else { return }
    output.abort()
    end()
  }

  func endWithPeer() { endsWithPeer = true }

  func write(_ bytes: ByteBuffer) {
    if case .streaming = phase { output?.write(bytes) }
  }

  func retire() {
    guard let output else { return }
    if case .streaming = phase, output.isWritable { finish() } else { abort() }
  }

  func start(_ operation: @escaping @Sendable () async -> Void) {
    if case .over = phase { return }
    tasks.append(RequestTasks.start(operation))
  }

  func onEnd(_ action: @escaping @Sendable () -> Void) {
    if case .over = phase { action() } else { endActions.append(action) }
  }

  func onDrain(_ action: @escaping @Sendable () -> Void) {
    drainActions.append(action)
  }

  /// The port drains.
  func drain() {
    let actions = drainActions
    drainActions = []
    for action in actions { action() }
  }

  /// The exchange is over, whoever ended it.
  func end() {
    if case .over = phase { return }
    phase = .over
    output = nil
    for task in tasks { task.cancel() }
    tasks = []
    let resumed = waiters
    waiters = []
    for waiter in resumed { waiter.resume(throwing: CancellationError()) }
    let actions = endActions
    endActions = []
    drainActions = []
    for action in actions { action() }
  }
}

/// The side that answers one request; usable from any task or thread.
final class HTTPResponder: Sendable {
  /// The event loop of the connection.
  let eventLoop: any EventLoop
  /// The address that the connection was made to.
  let localAddress: SocketAddress?
  private let exchange: NIOLoopBound<HTTPExchange>

  init(_ exchange: HTTPExchange) {
    eventLoop = exchange.eventLoop
    localAddress = exchange.localAddress
    self.exchange = NIOLoopBound(exchange, eventLoop: exchange.eventLoop)
  }

  /// Answers the request as a whole. CORS headers, the length and the connection's fate are added.
  func answer(_ answer: HTTPResponse) { onLoop { $0.answer(answer) } }

  /// Says that the answer goes on until somebody ends it: whoever has finished sending waits for it no longer.
  func endWithPeer() { onLoop { $0.endWithPeer() } }

  /// Begins an answer whose body follows by ``send(_:)`` and ends by ``finish()``.
  func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
    onLoop { $0.begin(status, headers) }
  }

  /// Sends a part of the body, flushed whole, and returns once the peer can take more.
  /// - Throws: `CancellationError` once the exchange is over.
  func send(_ bytes: ByteBuffer) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      onLoop { exchange in
        do {
          if try exchange.send(bytes) {
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

  /// Sends a part of the body, flushed whole, and does not wait: for a sender who knows by other means that the peer can
  /// take more.
  func write(_ bytes: ByteBuffer) { onLoop { $0.write(bytes) } }

  /// Ends an answer that nobody waits for any more: as it should if the peer reads it, else by a cut.
  func retire() { onLoop { $0.retire() } }

  /// Ends the body.
  func finish() { onLoop { $0.finish() } }

  /// Cuts the connection or stream: what was sent is not whole and cannot become so.
  func abort() { onLoop { $0.abort() } }

  /// Runs work for the exchange beside the event loop; it is cancelled when the exchange is over.
  func start(_ operation: @escaping @Sendable () async -> Void) {
    onLoop { $0.start(operation) }
  }

  /// Has `action` run on the event loop once the exchange is over, whoever ended it; at once if it is.
  func onEnd(_ action: @escaping @Sendable () -> Void) { onLoop { $0.onEnd(action) } }

  /// Has `action` run on the event loop when the port begins to drain: what lasts has to end then.
  func onDrain(_ action: @escaping @Sendable () -> Void) { onLoop { $0.onDrain(action) } }

  private func onLoop(_ body: @escaping @Sendable (HTTPExchange) -> Void) {
    if eventLoop.inEventLoop {
      body(exchange.value)
    } else {
      eventLoop.execute { [exchange] in body(exchange.value) }
    }
  }
}
