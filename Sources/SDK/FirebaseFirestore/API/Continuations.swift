// From callbacks to async functions.

import FirebaseCore
import FirestoreModel
import Foundation

enum Continuations {
  /// What a task hears whose completion will never be called.
  static let unknownOutcome = FirestoreError(
    .unknown, "The Firestore instance was ended before there was an answer, so the outcome is not known.")

  /// Waits for a completion that brings a value or an error.
  static func value<T: Sendable>(
    _ start: (@escaping @Sendable (T?, (any Error)?) -> Void) -> Void
  ) async throws -> T {
    try await Answer<Result<T, any Error>>.wait(unanswered: .failure(unknownOutcome.object)) { answer in
      start { value, error in
        answer.give(value.map { .success($0) } ?? .failure(error ?? FirestoreErrorCode(.unknown).object))
      }
    }.get()
  }

  /// Waits for a completion that brings an error or nothing.
  static func done(_ start: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async throws {
    try await Answer<Result<Void, any Error>>.wait(unanswered: .failure(unknownOutcome.object)) { answer in
      start { error in answer.give(error.map { .failure($0) } ?? .success(())) }
    }.get()
  }
}
