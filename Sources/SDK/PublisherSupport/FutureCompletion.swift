// The future completion: completes a future from a completion handler of the SDK.

#if canImport(Combine)
  package import Combine
#else
  package import OpenCombine
#endif

/// The error of a call that ended without a result and without an error.
struct MissingResult: Error {}

/// Completes one future, from any thread.
package struct FutureCompletion<Output>: @unchecked Sendable {
  // SAFETY: a future stores its first result under a lock and ignores later results.
  private let promise: Future<Output, any Error>.Promise

  init(_ promise: @escaping Future<Output, any Error>.Promise) { self.promise = promise }

  package func succeed(_ output: Output) { promise(.success(output)) }
  package func fail(_ error: any Error) { promise(.failure(error)) }

  /// Completes the future with the value, or with the error if the value is nil.
  package func complete(_ output: Output?, _ error: (any Error)?) {
    if let output { succeed(output) } else { fail(error ?? MissingResult()) }
  }
}

extension FutureCompletion where Output == Void {
  package func complete(_ error: (any Error)?) {
    if let error { fail(error) } else { succeed(()) }
  }
}

extension Future where Failure == any Error {
  /// Starts work that completes the future. If the work throws an error, the future fails.
  package static func starting(_ work: (FutureCompletion<Output>) throws -> Void) -> Future {
    var completion: FutureCompletion<Output>?
    let future = Future { completion = FutureCompletion($0) }
    guard let completion else {
      preconditionFailure("invariant: a future calls its closure when it is created")
    }
    do { try work(completion) } catch { completion.fail(error) }
    return future
  }
}
