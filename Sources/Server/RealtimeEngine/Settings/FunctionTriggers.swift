// Stores the function triggers that the Firebase command line tool registers. The server lists them, but
// never executes functions.
//
//   's' "trigger/" + name   path, event, topic and namespace pattern, which may be empty

package import Access
import OrderedStore
package import RealtimeModel

/// A function that is registered for changes.
package struct FunctionTrigger: Sendable, Equatable {
  /// The function's resource name. A trigger with the same name is replaced.
  package let name: String
  /// The path of the change, with wildcards.
  package let path: String
  /// The event type.
  package let event: String
  /// The topic for the function's events.
  package let topic: String
  /// The pattern of namespaces; nil for the namespace of the registration.
  package let namespacePattern: String?

  /// Creates a trigger.
  package init(name: String, path: String, event: String, topic: String, namespacePattern: String?) {
    self.name = name
    self.path = path
    self.event = event
    self.topic = topic
    self.namespacePattern = namespacePattern
  }

  fileprivate var bytes: [UInt8] {
    var encoder = NodeEncoder()
    for text in [path, event, topic, namespacePattern ?? ""] { encoder.append(text) }
    return encoder.bytes
  }

  fileprivate init(name: String, _ bytes: UnsafeRawBufferPointer) throws {
    var decoder = NodeDecoder(bytes)
    self.name = name
    path = try decoder.text()
    event = try decoder.text()
    topic = try decoder.text()
    let pattern = try decoder.text()
    namespacePattern = pattern.isEmpty ? nil : pattern
  }
}

extension RowKeys {
  fileprivate static let triggers: [UInt8] = metadata("trigger/")
}

extension SettingsHandler {
  fileprivate func functionTriggers() throws -> [FunctionTrigger] {
    var triggers: [FunctionTrigger] = []
    try tree.view.scan(KeyRange(prefix: RowKeys.triggers), reverse: false) { key, value, _ in
      let name = String(decoding: key.dropFirst(RowKeys.triggers.count), as: UTF8.self)
      triggers.append(try FunctionTrigger(name: name, value))
      return true
    }
    return triggers
  }
}

extension RealtimeDatabase {
  /// Maximum triggers of one database, and maximum bytes of each.
  private static let maximumTriggers = 1_000
  private static let maximumTriggerBytes = 16 << 10

  /// Returns the function triggers, by name.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func functionTriggers(as caller: Principal) async throws(RealtimeError) -> [FunctionTrigger] {
    try await inspect(as: caller) { try $0.settings.functionTriggers() }
  }

  /// Adds a function trigger durably, or replaces the trigger with the same name.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `failure` for too many or too large triggers,
  ///   `permission_denied` unless the caller is an administrator.
  package func add(_ trigger: FunctionTrigger, as caller: Principal) async throws(RealtimeError) {
    let row = RowKeys.triggers + Array(trigger.name.utf8)
    let bytes = trigger.bytes
    guard row.count + bytes.count <= RealtimeDatabase.maximumTriggerBytes else {
      throw RealtimeError(
        .failure, "a function trigger may have at most \(RealtimeDatabase.maximumTriggerBytes) bytes")
    }
    try await administer(bytes: row.count + bytes.count, as: caller) { batch in
      if try batch.tree.view.get(row) == nil,
        try batch.settings.functionTriggers().count >= RealtimeDatabase.maximumTriggers
      {
        throw RealtimeError(
          .failure, "a database may have at most \(RealtimeDatabase.maximumTriggers) function triggers")
      }
      try batch.requireWriter().set(row, bytes)
    }
  }
}
