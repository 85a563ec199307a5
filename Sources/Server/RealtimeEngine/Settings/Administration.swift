// Runs the operations of administrators on a database's settings, in sequence with all other operations.

import Access
import Locking
import OrderedStore
import RealtimeModel

extension RowKeys {
  /// The row of a setting or another record that is not part of the tree.
  static func metadata(_ name: String) -> [UInt8] { [UInt8(ascii: "s")] + Array(name.utf8) }
}

extension RealtimeDatabase {
  /// Runs a closure on the executor. The closure's writes are durable when this returns.
  ///
  /// - Parameters:
  ///   - bytes: the approximate number of bytes that the closure writes.
  ///   - work: the closure. It may run more than once; the writes of a failed run are discarded.
  /// - Throws: `permission_denied` unless the caller is an administrator; errors of the closure.
  func administer<Value: Sendable>(
    bytes: Int, as caller: Principal, _ work: @escaping @Sendable (BatchExecution) throws -> Value
  ) async throws(RealtimeError) -> Value {
    let result = Guarded<Value?>(nil)
    _ = try await call(RealtimeDatabase.action(bytes, result, work), as: caller)
    return try RealtimeDatabase.value(of: result)
  }

  /// Runs a closure on the durable state, off the executor.
  ///
  /// - Throws: the errors of ``administer(bytes:as:_:)``.
  func inspect<Value: Sendable>(
    as caller: Principal, _ work: @escaping @Sendable (BatchExecution) throws -> Value
  ) async throws(RealtimeError) -> Value {
    let result = Guarded<Value?>(nil)
    _ = try await read(RealtimeDatabase.action(0, result, work), as: caller)
    return try RealtimeDatabase.value(of: result)
  }

  private static func action<Value: Sendable>(
    _ bytes: Int, _ result: Guarded<Value?>,
    _ work: @escaping @Sendable (BatchExecution) throws -> Value
  ) -> RealtimeOperation.Action {
    .administer(bytes: bytes) { batch in
      let value = try work(batch)
      result.withLock { $0 = value }
    }
  }

  private static func value<Value>(of result: Guarded<Value?>) throws(RealtimeError) -> Value {
    guard let value = result.withLock({ $0 }) else { throw RealtimeError(.failure, "internal error") }
    return value
  }
}
