// Serial tasks: runs asynchronous operations one after another, in the order in which they were added.

/// A queue of asynchronous operations.
actor SerialTasks {
  private var last: Task<Void, Never>?

  /// Runs an operation after all operations that were added before it have ended or failed.
  func run<Value: Sendable>(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let previous = last
    let task = Task {
      await previous?.value
      return try await operation()
    }
    last = Task { _ = await task.result }
    return try await task.value
  }
}
