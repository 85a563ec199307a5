// Calls the app's handlers on the main queue, as Google's SDK does.

import Dispatch

/// A handler of the app.
// SAFETY: the handler is called only on the main queue. The app does not use it after it has passed it to
// this library.
struct MainQueueHandler<Input>: @unchecked Sendable {
  private let handler: (Input) -> Void

  init(_ handler: @escaping (Input) -> Void) {
    self.handler = handler
  }

  /// Calls the handler. The caller must be on the main queue.
  func callAsFunction(_ input: Input) {
    dispatchPrecondition(condition: .onQueue(.main))
    handler(input)
  }
}

/// Runs an operation and passes its result to a completion handler on the main queue.
func complete<Value: Sendable>(
  _ completion: ((Value?, (any Error)?) -> Void)?, _ operation: @escaping @Sendable () async throws -> Value
) {
  let handler = completion.map { completion in
    MainQueueHandler<(Value?, (any Error)?)> { completion($0.0, $0.1) }
  }
  Task {
    let result: Result<Value, any Error>
    do { result = .success(try await operation()) } catch { result = .failure(authError(error)) }
    guard let handler else { return }
    DispatchQueue.main.async {
      switch result {
      case .success(let value): handler((value, nil))
      case .failure(let error): handler((nil, error))
      }
    }
  }
}

/// Runs an operation without a result, and passes its error to a completion handler on the main queue.
func completeVoid(
  _ completion: (((any Error)?) -> Void)?, _ operation: @escaping @Sendable () async throws -> Void
) {
  complete(completion.map { completion in { (_: Bool?, error: (any Error)?) in completion(error) } }) {
    try await operation()
    return true
  }
}
