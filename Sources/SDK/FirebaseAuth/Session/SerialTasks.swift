// Runs asynchronous operations one after the other, in the order in which they were added.

/// A queue of asynchronous operations.
actor SerialTasks {
  private var last: Task<Void, Never>?

  /// Runs an operation after those that were added before it ended, also if they failed.
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
