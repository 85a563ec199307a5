// Passes the chunks of one request body from the event loop to a consumer in a task.
//
// Invariants
//   1. The producer pauses while more than the high watermark is queued. It resumes at the low watermark.
//   2. Small chunks are merged, so that the queue's overhead per chunk stays small.

import NIOConcurrencyHelpers
import NIOCore

/// The chunks of a request body that have arrived and wait for the consumer.
package final class BodyQueue: Sendable {
  /// An element that the consumer receives.
  package enum Next: Sendable {
    case chunk([UInt8])
    /// The body is complete.
    case end
    /// The remaining chunks of the body will not arrive, or were discarded.
    case broken
  }

  private struct State {
    var chunks: CircularBuffer<ByteBuffer> = []
    var bytes = 0
    var end: Next?
    var isPaused = false
    var consumer: CheckedContinuation<Next, Never>?

    /// Appends a chunk, merged into the last one if both are small.
    mutating func append(_ chunk: ByteBuffer) {
      bytes += chunk.readableBytes
      let last = chunks.last?.readableBytes ?? BodyQueue.mergedBytes
      if last + chunk.readableBytes <= BodyQueue.mergedBytes {
        // The chunk is removed before it grows: a second reference would cause a copy.
        var last = chunks.removeLast()
        last.writeImmutableBuffer(chunk)
        chunks.append(last)
      } else {
        chunks.append(chunk)
      }
    }
  }

  private static let highWatermark = 512 << 10
  private static let lowWatermark = 128 << 10
  /// Maximum bytes of a merged chunk.
  fileprivate static let mergedBytes = 64 << 10

  private let state = NIOLockedValueBox(State())
  /// Called, on any thread, when a paused producer may resume.
  private let resume: @Sendable () -> Void

  /// The consumer calls this, on any thread, with a number of bytes that it released.
  package let onConsumed: @Sendable (Int) -> Void

  init(resume: @escaping @Sendable () -> Void, onConsumed: @escaping @Sendable (Int) -> Void = { _ in }) {
    self.resume = resume
    self.onConsumed = onConsumed
  }

  /// Returns true if the producer has to pause until `resume` is called.
  func pauseIfFull() -> Bool {
    state.withLockedValue { state in
      state.isPaused = state.bytes >= BodyQueue.highWatermark
      return state.isPaused
    }
  }

  /// Adds a chunk.
  func add(_ chunk: ByteBuffer) {
    guard chunk.readableBytes > 0 else { return }
    let consumer = state.withLockedValue { state -> CheckedContinuation<Next, Never>? in
      if let consumer = state.consumer {
        state.consumer = nil
        return consumer
      }
      state.append(chunk)
      return nil
    }
    consumer?.resume(returning: .chunk(Array(chunk.readableBytesView)))
  }

  /// Ends the body with `end` or `broken`. A later call has an effect only if it passes `broken` while chunks are queued:
  /// it discards the chunks, and the consumer receives `broken`, so that a truncated body never looks complete.
  func finish(_ end: Next) {
    let consumer = state.withLockedValue { state -> CheckedContinuation<Next, Never>? in
      if case .broken = end, !state.chunks.isEmpty {
        state.chunks = []
        state.bytes = 0
        state.end = .broken
      }
      if state.end == nil { state.end = end }
      defer { state.consumer = nil }
      return state.consumer
    }
    consumer?.resume(returning: end)
  }

  /// Waits for the next chunk. One consumer at a time.
  package func next() async -> Next {
    await withCheckedContinuation { continuation in
      let (next, resumes) = state.withLockedValue { state -> (Next?, Bool) in
        guard let chunk = state.chunks.popFirst() else {
          if state.end == nil {
            precondition(state.consumer == nil, "invariant: a body has one consumer")
            state.consumer = continuation
          }
          return (state.end, false)
        }
        state.bytes -= chunk.readableBytes
        precondition(state.bytes >= 0, "invariant: a body queue counts every chunk that it holds")
        let resumes = state.isPaused && state.bytes <= BodyQueue.lowWatermark
        if resumes { state.isPaused = false }
        return (.chunk(Array(chunk.readableBytesView)), resumes)
      }
      if let next { continuation.resume(returning: next) }
      if resumes { resume() }
    }
  }
}
