// What administrators do with what is kept of a database beside its data: in the one order of everything else.

import Locking
import OrderedStore
import RealtimeModel

extension RowKeys {
  /// The row of something that is kept beside the data.
  static func kept(_ name: String) -> [UInt8] { [UInt8(ascii: "s")] + Array(name.utf8) }
}

extension RealtimeDatabase {
  /// Does something in the sequencer; durable when this returns.
  ///
  /// - Parameters:
  ///   - bytes: about how much it writes.
  ///   - work: may be run more than once: where it fails nothing of it stays.
  /// - Throws: `permission_denied` to everyone but administrators; what the work throws.
  func administer<Value: Sendable>(
    bytes: Int, as caller: Caller, _ work: @escaping @Sendable (inout SequencedBody) throws -> Value
  ) async throws(RealtimeError) -> Value {
    let result = Guarded<Value?>(nil)
    _ = try await call(RealtimeDatabase.administering(bytes, result, work), as: caller)
    return try RealtimeDatabase.known(result)
  }

  /// Looks at what is durable, beside the sequencer.
  ///
  /// - Throws: as ``administer(bytes:as:_:)``.
  func inspect<Value: Sendable>(
    as caller: Caller, _ work: @escaping @Sendable (inout SequencedBody) throws -> Value
  ) async throws(RealtimeError) -> Value {
    let result = Guarded<Value?>(nil)
    _ = try await read(RealtimeDatabase.administering(0, result, work), as: caller)
    return try RealtimeDatabase.known(result)
  }

  private static func administering<Value: Sendable>(
    _ bytes: Int, _ result: Guarded<Value?>,
    _ work: @escaping @Sendable (inout SequencedBody) throws -> Value
  ) -> Operation.Action {
    .administer(bytes: bytes) { body in
      let value = try work(&body)
      result.withLock { $0 = value }
    }
  }

  private static func known<Value>(_ result: Guarded<Value?>) throws(RealtimeError) -> Value {
    guard let value = result.withLock({ $0 }) else { throw RealtimeError(.failure, "internal error") }
    return value
  }
}
