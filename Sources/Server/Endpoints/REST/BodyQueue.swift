// A request's body on its way from the event loop to whoever takes it piece by piece. Invariants: who brings it is told to
// stop while more waits than the high watermark, and to go on once little is left; what has come in many small pieces is
// taken as one.

import NIOConcurrencyHelpers
import NIOCore

/// The pieces of one body that have arrived and were not taken.
final class BodyQueue: Sendable {
  /// What comes next.
  enum Next: Sendable {
    case piece([UInt8])
    /// The body has ended.
    case end
    /// The rest will not come.
    case broken
  }

  private struct State {
    var pieces: CircularBuffer<ByteBuffer> = []
    var bytes = 0
    var end: Next?
    var isHeld = false
    var taker: CheckedContinuation<Next, Never>?

    /// Adds bytes, to those before them if both are few.
    mutating func append(_ piece: ByteBuffer) {
      bytes += piece.readableBytes
      let before = pieces.last?.readableBytes ?? BodyQueue.pieceBytes
      if before + piece.readableBytes <= BodyQueue.pieceBytes {
        // Taken out first, so that it is changed in place.
        var last = pieces.removeLast()
        last.writeImmutableBuffer(piece)
        pieces.append(last)
      } else {
        pieces.append(piece)
      }
    }
  }

  private static let highBytes = 512 << 10
  private static let lowBytes = 128 << 10
  /// What is put together to one piece.
  fileprivate static let pieceBytes = 64 << 10

  private let state = NIOLockedValueBox(State())
  /// Called when whoever brings the body may go on.
  private let goOn: @Sendable () -> Void

  /// Called with the number of bytes that whoever takes the body holds no more.
  let taken: @Sendable (Int) -> Void

  init(goOn: @escaping @Sendable () -> Void, taken: @escaping @Sendable (Int) -> Void = { _ in }) {
    self.goOn = goOn
    self.taken = taken
  }

  /// Whether enough waits.
  var isFull: Bool {
    state.withLockedValue { state in
      state.isHeld = state.bytes >= BodyQueue.highBytes
      return state.isHeld
    }
  }

  /// Adds a piece.
  func add(_ piece: ByteBuffer) {
    guard piece.readableBytes > 0 else { return }
    let taker = state.withLockedValue { state -> CheckedContinuation<Next, Never>? in
      if let taker = state.taker {
        state.taker = nil
        return taker
      }
      state.append(piece)
      return nil
    }
    taker?.resume(returning: .piece(Array(piece.readableBytesView)))
  }

  /// Ends the body; later calls change nothing.
  func finish(_ end: Next) {
    let taker = state.withLockedValue { state -> CheckedContinuation<Next, Never>? in
      if state.end == nil { state.end = end }
      if case .broken = end {
        state.pieces = []
        state.bytes = 0
      }
      defer { state.taker = nil }
      return state.taker
    }
    taker?.resume(returning: end)
  }

  /// The next piece, once there is one. One taker at a time.
  func next() async -> Next {
    await withCheckedContinuation { continuation in
      let (next, goesOn) = state.withLockedValue { state -> (Next?, Bool) in
        guard let piece = state.pieces.popFirst() else {
          if state.end == nil { state.taker = continuation }
          return (state.end, false)
        }
        state.bytes -= piece.readableBytes
        let goesOn = state.isHeld && state.bytes <= BodyQueue.lowBytes
        if goesOn { state.isHeld = false }
        return (.piece(Array(piece.readableBytesView)), goesOn)
      }
      if let next { continuation.resume(returning: next) }
      if goesOn { goOn() }
    }
  }
}
