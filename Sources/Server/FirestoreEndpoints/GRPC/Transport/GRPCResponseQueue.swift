// Queues the unary calls of one HTTP/2 connection until there is capacity for their responses, counts unread responses, and
// closes a connection whose client does not read.
//
// The limit bounds the responses that a client requests and does not read. A streaming call can pause when its
// stream is full. A unary call cannot, so it waits before it starts.
//
// Invariants
//   1. Expected bytes (reserved by running calls) and queued bytes (responses that the client has not read) stay
//      together within the limit, except for responses that exceed their expected size.
//   2. Reading from the connection never pauses, because queued responses are sent only after WINDOW_UPDATE and SETTINGS
//      frames of the client arrive.
//   3. A call that other calls may wait for, such as the end of a transaction, expects 0 bytes. It waits only while the
//      client does not read queued responses, and never for other calls.

import NIOCore
import Ports

/// The unary responses of one HTTP/2 connection. Confined to its event loop.
final class GRPCResponseQueue {
  private let limit: Int
  private let timeout: TimeAmount
  private let memory: MemoryReservation
  private let channel: any Channel
  /// Expected bytes of the responses of running calls.
  private var expectedBytes = 0
  /// Bytes of unary responses that were not written to the socket.
  private var queuedBytes = 0
  /// Bytes of streams that were not written to the socket.
  private var streamBytes = 0
  private var waiting: [(handler: GRPCStreamHandler, bytes: Int)] = []
  private var lastProgress = NIODeadline.now()
  private var timer: Scheduled<Void>?
  private var isStopped = false

  init(_ limits: HTTP2Limits, _ memory: MemoryReservation, _ channel: any Channel) {
    self.memory = memory
    self.limit = limits.maximumQueuedResponseBytes
    self.timeout = limits.unreadResponseTimeout
    self.channel = channel
  }

  /// Whether the client has not read some unary response.
  var hasUnreadResponses: Bool { queuedBytes > 0 }

  /// Reserves capacity for a response of `bytes` bytes; 0 for a small one. Returns false if there is not enough
  /// capacity.
  func reserve(_ bytes: Int) -> Bool {
    guard hasCapacity(for: bytes) else { return false }
    expectedBytes += bytes
    return true
  }

  /// Queues a stream. It is started by `startQueued` when there is capacity for its response.
  func enqueue(_ handler: GRPCStreamHandler, expecting bytes: Int) {
    waiting.append((handler, bytes))
  }

  /// Removes a stream that has not started.
  func remove(_ handler: GRPCStreamHandler) {
    waiting.removeAll { $0.handler === handler }
  }

  /// Releases reserved capacity, after the call has written its response or ended without a response.
  func release(_ bytes: Int) {
    guard bytes > 0 else { return }
    expectedBytes -= bytes
    precondition(expectedBytes >= 0, "invariant: a call releases the capacity of its response once")
    startWaitingCalls()
  }

  /// Counts a response until its write completes or its stream ends, then releases its memory, which the caller
  /// reserved.
  func trackResponse(_ bytes: Int) -> EventLoopPromise<Void> {
    beginWrite()
    queuedBytes += bytes
    let written = channel.eventLoop.makePromise(of: Void.self)
    let queue = NIOLoopBound(self, eventLoop: channel.eventLoop)
    written.futureResult.whenComplete { result in
      let queue = queue.value
      queue.queuedBytes -= bytes
      precondition(queue.queuedBytes >= 0, "invariant: a response is written once")
      queue.memory.release(bytes)
      // The write of a reset stream fails. It is not progress, because the client has not read the response.
      if case .success = result { queue.lastProgress = .now() }
      queue.startWaitingCalls()
    }
    return written
  }

  /// Counts a write of a stream until it completes or its stream ends, then releases its memory, which the caller reserved.
  func trackStreamWrite(_ bytes: Int) -> EventLoopPromise<Void> {
    beginWrite()
    streamBytes += bytes
    let written = channel.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { result in
      self.streamBytes -= bytes
      precondition(self.streamBytes >= 0, "invariant: a write completes once")
      self.memory.release(bytes)
      // The write of a reset stream fails. It is not progress, because the client has not read the response.
      if case .success = result { self.lastProgress = .now() }
    }
    return written
  }

  private func beginWrite() {
    if queuedBytes == 0, streamBytes == 0 { lastProgress = .now() }
    startTimer(timeout)
  }

  /// Called when the connection has closed.
  func stop() {
    isStopped = true
    timer?.cancel()
    timer = nil
    waiting = []
  }

  /// A response that is expected to exceed the limit has capacity if no other response is expected or queued.
  private func hasCapacity(for bytes: Int) -> Bool {
    if bytes == 0 { return queuedBytes < limit }
    let used = expectedBytes + queuedBytes
    return used == 0 || used + bytes <= limit
  }

  private func startWaitingCalls() {
    while let index = waiting.firstIndex(where: { hasCapacity(for: $0.bytes) }) {
      let next = waiting.remove(at: index)
      expectedBytes += next.bytes
      next.handler.startQueued(expecting: next.bytes)
    }
  }

  private func startTimer(_ time: TimeAmount) {
    guard timer == nil, !isStopped else { return }
    let queue = NIOLoopBound(self, eventLoop: channel.eventLoop)
    timer = channel.eventLoop.scheduleTask(in: time) { queue.value.checkProgress() }
  }

  /// Closes the connection if nothing was written within the timeout, even if the client answers every PING.
  private func checkProgress() {
    timer = nil
    guard queuedBytes + streamBytes > 0 else { return }
    let remaining = lastProgress + timeout - .now()
    if remaining > .zero { startTimer(remaining) } else { channel.close(promise: nil) }
  }
}
