// Stores rulesets, which are named rules files, and labels that assign them a purpose. The ruleset with the
// label `stable` is in force.
//
//   's' "rulesets"          the labels, and the name and time of each ruleset, oldest first
//   's' "ruleset/" + name   its rules file, as UTF-8
//
// Invariant: while the label `stable` exists, the rules in force are those of its ruleset. The commit that
// replaces the rules also moves the label, or removes it if the rules are replaced in another way.

package import Access
import OrderedStore
package import RealtimeModel

/// A ruleset.
package struct Ruleset: Sendable, Equatable {
  /// The name, which the server assigned.
  package let id: String
  /// The creation time, in milliseconds since the Unix epoch.
  package let createdAt: Int64
  /// The source of the rules file.
  package let source: String
}

/// The labels of rulesets.
package struct RulesetLabels: Sendable, Equatable {
  /// The ruleset in force.
  package var stable: String?
  /// The ruleset for trials. It also decides every request of users, and differences from the rules in force are
  /// reported.
  package var canary: String?

  /// Creates labels.
  package init(stable: String? = nil, canary: String? = nil) {
    self.stable = stable
    self.canary = canary
  }

  fileprivate var ids: [String] { [stable, canary].compactMap { $0 } }
}

/// The list of rulesets in one database.
struct RulesetDirectory {
  struct Entry {
    let id: String
    let createdAt: Int64
  }

  /// Maximum rulesets of one database. Adding another removes the oldest one without a label.
  static let maximumCount = 64

  var labels = RulesetLabels()
  /// The rulesets, oldest first.
  private(set) var entries: [Entry] = []

  init(in view: any ReadView) throws {
    guard let row = try view.get(RowKeys.rulesets) else { return }
    try row.value.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      let (stable, canary) = (try decoder.text(), try decoder.text())
      labels = RulesetLabels(stable: stable.isEmpty ? nil : stable, canary: canary.isEmpty ? nil : canary)
      entries = try (0..<(try decoder.count())).map { _ in
        let id = try decoder.text()
        guard let createdAt = Int64(try decoder.text()) else { throw NodeDecoder.corrupted }
        return Entry(id: id, createdAt: createdAt)
      }
    }
  }

  /// Adds a ruleset. Returns the name of the ruleset that is removed to make room; nil if none is removed.
  mutating func add(_ entry: Entry) -> String? {
    entries.append(entry)
    guard entries.count > RulesetDirectory.maximumCount,
      let oldest = entries.firstIndex(where: { !labels.ids.contains($0.id) })
    else { return nil }
    return entries.remove(at: oldest).id
  }

  func has(_ id: String) -> Bool { entries.contains { $0.id == id } }

  var bytes: [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(labels.stable ?? "")
    encoder.append(labels.canary ?? "")
    encoder.append(entries.count)
    for entry in entries {
      encoder.append(entry.id)
      encoder.append(String(entry.createdAt))
    }
    return encoder.bytes
  }
}

extension RowKeys {
  /// The row of the list of rulesets.
  static let rulesets: [UInt8] = metadata("rulesets")

  /// The row of a ruleset.
  static func ruleset(_ id: String) -> [UInt8] { metadata("ruleset/" + id) }
}

extension SettingsHandler {
  /// The source of a ruleset; nil if there is none with this name.
  func source(ofRuleset id: String) throws -> String? {
    try tree.view.get(RowKeys.ruleset(id)).map { String(decoding: $0.value, as: UTF8.self) }
  }

  /// Removes the label `stable` unless its ruleset has exactly this source. Called when the rules are
  /// replaced directly.
  func unlabelStable(unless source: String) throws {
    var directory = try RulesetDirectory(in: tree.view)
    guard let stable = directory.labels.stable, try self.source(ofRuleset: stable) != source else { return }
    directory.labels.stable = nil
    try batch.requireWriter().set(RowKeys.rulesets, directory.bytes)
  }
}

extension RealtimeDatabase {
  /// Stores a ruleset durably and returns its name. The rules in force do not change.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func addRuleset(_ rules: RulesFile, as caller: Principal) async throws(RealtimeError) -> String {
    let id = RandomName.make(20)
    return try await administer(bytes: rules.text.utf8.count, as: caller) { batch in
      let writer = try batch.requireWriter()
      var directory = try RulesetDirectory(in: batch.tree.view)
      if let dropped = directory.add(.init(id: id, createdAt: batch.now)) {
        try writer.clear(RowKeys.ruleset(dropped))
      }
      try writer.set(RowKeys.ruleset(id), Array(rules.text.utf8))
      try writer.set(RowKeys.rulesets, directory.bytes)
      return id
    }
  }

  /// Returns the rulesets, oldest first.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func rulesets(as caller: Principal) async throws(RealtimeError) -> [Ruleset] {
    try await inspect(as: caller) { batch in
      try RulesetDirectory(in: batch.tree.view).entries.compactMap { entry in
        try batch.settings.source(ofRuleset: entry.id).map {
          Ruleset(id: entry.id, createdAt: entry.createdAt, source: $0)
        }
      }
    }
  }

  /// Returns a ruleset by name; nil if there is none.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func ruleset(_ id: String, as caller: Principal) async throws(RealtimeError) -> Ruleset? {
    try await inspect(as: caller) { batch in
      let entry = try RulesetDirectory(in: batch.tree.view).entries.first { $0.id == id }
      guard let entry, let source = try batch.settings.source(ofRuleset: id) else { return nil }
      return Ruleset(id: id, createdAt: entry.createdAt, source: source)
    }
  }

  /// Returns the labels of rulesets.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func rulesetLabels(as caller: Principal) async throws(RealtimeError) -> RulesetLabels {
    try await inspect(as: caller) { try RulesetDirectory(in: $0.tree.view).labels }
  }

  /// Replaces all labels. The same commit puts the ruleset with the label `stable` into force. Without this
  /// label the rules do not change.
  ///
  /// - Returns: the rules that were put into force.
  /// - Throws: ``RealtimeModel/RealtimeError``: `failure` for a missing ruleset, `permission_denied` unless
  ///   the caller is an administrator.
  package func setRulesetLabels(
    _ labels: RulesetLabels, as caller: Principal
  ) async throws(RealtimeError) -> RulesFile? {
    var stable: RulesFile?
    if let id = labels.stable {
      guard let ruleset = try await ruleset(id, as: caller) else { throw RealtimeError.noRuleset(id) }
      do { stable = try RulesFile(Array(ruleset.source.utf8)) } catch {
        throw RealtimeError(.failure, "ruleset \(id) cannot be read: \(error)")
      }
    }
    if let id = labels.canary {
      guard let ruleset = try await ruleset(id, as: caller) else { throw RealtimeError.noRuleset(id) }
      if let file = try? RulesFile(Array(ruleset.source.utf8)) {
        runner.executor.rules.prepareCanary(id, file)
      }
    }
    let prepared = stable.map { runner.executor.rules.prepare($0) }
    return try await administer(bytes: stable?.text.utf8.count ?? 0, as: caller) { [stable] batch in
      var directory = try RulesetDirectory(in: batch.tree.view)
      for id in labels.ids where !directory.has(id) { throw RealtimeError.noRuleset(id) }
      if let prepared { try batch.settings.set(prepared, for: caller) }
      directory.labels = labels
      batch.cachedCanary = nil
      try batch.requireWriter().set(RowKeys.rulesets, directory.bytes)
      return stable
    }
  }
}

extension RealtimeError {
  fileprivate static func noRuleset(_ id: String) -> RealtimeError {
    RealtimeError(.failure, "There is no ruleset '\(id)'.")
  }
}
