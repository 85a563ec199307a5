// Holds a value that one task provides later and several may await.

import Locking
import OrderedStore

/// A value that is resolved once.
final class Promise<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: [CheckedContinuation<Value, Never>] = []
  }

  private let state = Guarded(State())

  /// Sets the value unless it is set already.
  func resolve(_ value: Value) {
    let waiting = state.withLock { state -> [CheckedContinuation<Value, Never>] in
      guard state.value == nil else { return [] }
      state.value = value
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: value) }
  }

  /// Sets the value. Traps if it is already set.
  func resolveOnce(_ value: Value) {
    precondition(resolvedValue == nil, "invariant: the value is resolved once")
    resolve(value)
  }

  /// The value if it is resolved.
  var resolvedValue: Value? { state.withLock { $0.value } }

  /// Waits for the value.
  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let value = state.withLock { state -> Value? in
        if state.value == nil { state.waiting.append(continuation) }
        return state.value
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
