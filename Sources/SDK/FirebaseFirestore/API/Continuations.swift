// Converts callbacks to async functions.

import FirebaseCore
import FirestoreModel
import Foundation

enum Continuations {
  /// The error that an async method throws if its completion is never called.
  static let unknownOutcome = FirestoreError(
    .unknown,
    "The Firestore instance was terminated before the server responded, so the outcome is not known.")

  /// Calls a function and waits until it calls its completion with a value or an error.
  static func waitForResult<T: Sendable>(
    _ start: (@escaping @Sendable (T?, (any Error)?) -> Void) -> Void
  ) async throws -> T {
    try await OneShotContinuation<Result<T, any Error>>.wait(fallback: .failure(unknownOutcome.object)) {
      continuation in
      start { value, error in
        continuation.resume(
          returning: value.map { .success($0) } ?? .failure(error ?? FirestoreErrorCode(.unknown).object))
      }
    }.get()
  }

  /// Calls a function and waits until it calls its completion with an error or nil.
  static func waitForCompletion(_ start: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async throws {
    try await OneShotContinuation<Result<Void, any Error>>.wait(fallback: .failure(unknownOutcome.object)) {
      continuation in
      start { error in continuation.resume(returning: error.map { .failure($0) } ?? .success(())) }
    }.get()
  }
}
