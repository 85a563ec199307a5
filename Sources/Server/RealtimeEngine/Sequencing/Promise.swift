// A value that becomes known once, and those who wait for it.

import Locking
import OrderedStore

/// A value that is set once and may be awaited by several.
final class Promise<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: [CheckedContinuation<Value, Never>] = []
  }

  private let state = Guarded(State())

  /// Sets the value; later calls change nothing.
  func resolve(_ value: Value) {
    let waiting = state.withLock { state -> [CheckedContinuation<Value, Never>] in
      guard state.value == nil else { return [] }
      state.value = value
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: value) }
  }

  /// The value if it is known already.
  var known: Value? { state.withLock { $0.value } }

  /// The value, once it is known.
  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Value? in
        if state.value == nil { state.waiting.append(continuation) }
        return state.value
      }
      if let known { continuation.resume(returning: known) }
    }
  }
}
