// The bound on answers that a peer asked for and does not take. A streaming call waits while its stream is full; a call
// with one answer cannot, so it waits before it starts.
//
// Invariants
//   1. Expected and queued bytes stay within the limit, but for what single answers exceed their expectation by.
//   2. The connection is read all the while: what makes room is a WINDOW_UPDATE or SETTINGS of the peer.
//   3. A call that may be waited for by others under way (it ends a transaction) needs room for no answer of its own:
//      it never waits behind calls under way, only for a peer that does not read.

import NIOCore

/// The answers of one HTTP/2 connection's calls with one answer. Confined to its event loop.
final class GRPCAnswerQueue {
  private let limit: Int
  private let timeout: TimeAmount
  private let memory: MemoryReservation
  private let channel: any Channel
  private var expectedBytes = 0
  private var queuedBytes = 0
  private var waiting: [(handler: GRPCStreamHandler, bytes: Int)] = []
  private var lastProgress = NIODeadline.now()
  private var timer: Scheduled<Void>?
  private var isStopped = false

  init(_ limits: HTTP2Limits, _ memory: MemoryReservation, _ channel: any Channel) {
    self.memory = memory
    self.limit = limits.maximumQueuedAnswerBytes
    self.timeout = limits.unreadAnswerTimeout
    self.channel = channel
  }

  /// Makes room for an answer of so many bytes, or none as far as it is known; false if there is none.
  func expect(_ bytes: Int) -> Bool {
    guard hasRoom(for: bytes) else { return false }
    expectedBytes += bytes
    return true
  }

  /// Has the stream started, by `startWaiting`, once there is room for its answer.
  func wait(_ handler: GRPCStreamHandler, for bytes: Int) {
    waiting.append((handler, bytes))
  }

  func stopWaiting(_ handler: GRPCStreamHandler) {
    waiting.removeAll { $0.handler === handler }
  }

  /// The answer that took up room is written, or will not be.
  func forget(_ bytes: Int) {
    guard bytes > 0 else { return }
    expectedBytes -= bytes
    startWaiting()
  }

  /// Counts an answer, for whose bytes memory was taken, until its last byte has gone to the socket, or its stream has
  /// ended; then gives the memory back.
  func add(_ bytes: Int) -> EventLoopPromise<Void> {
    if queuedBytes == 0 { lastProgress = .now() }
    queuedBytes += bytes
    arm(timeout)
    let written = channel.eventLoop.makePromise(of: Void.self)
    let queue = NIOLoopBound(self, eventLoop: channel.eventLoop)
    written.futureResult.whenComplete { _ in
      let queue = queue.value
      queue.queuedBytes -= bytes
      queue.memory.release(bytes)
      queue.lastProgress = .now()
      queue.startWaiting()
    }
    return written
  }

  /// The connection is gone.
  func stop() {
    isStopped = true
    timer?.cancel()
    timer = nil
    waiting = []
  }

  /// Even an answer that is expected to exceed the limit finds room where there is no other.
  private func hasRoom(for bytes: Int) -> Bool {
    if bytes == 0 { return queuedBytes < limit }
    let taken = expectedBytes + queuedBytes
    return taken == 0 || taken + bytes <= limit
  }

  private func startWaiting() {
    while let index = waiting.firstIndex(where: { hasRoom(for: $0.bytes) }) {
      let next = waiting.remove(at: index)
      expectedBytes += next.bytes
      next.handler.startWaiting(expecting: next.bytes)
    }
  }

  private func arm(_ time: TimeAmount) {
    guard timer == nil, !isStopped else { return }
    let queue = NIOLoopBound(self, eventLoop: channel.eventLoop)
    timer = channel.eventLoop.scheduleTask(in: time) { queue.value.check() }
  }

  private func check() {
    timer = nil
    guard queuedBytes > 0 else { return }
    let left = lastProgress + timeout - .now()
    if left > .zero { arm(left) } else { channel.close(promise: nil) }
  }
}
