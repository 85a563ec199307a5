// From callbacks to async functions.

import Foundation

enum Continuations {
  /// Waits for a completion that brings a value or an error.
  static func value<T: Sendable>(
    _ start: (@escaping @Sendable (T?, (any Error)?) -> Void) -> Void
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      start { value, error in
        if let value {
          continuation.resume(returning: value)
        } else {
          continuation.resume(throwing: error ?? FirestoreErrorCode(.unknown).object)
        }
      }
    }
  }

  /// Waits for a completion that brings an error or nothing.
  static func done(_ start: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      start { error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
      }
    }
  }
}
