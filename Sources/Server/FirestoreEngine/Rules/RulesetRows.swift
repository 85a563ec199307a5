// Reads and writes the rulesets and the release history of one database.
//
//     history   0A | time of the release, microseconds since 1970, 8 bytes   -> ID of the ruleset
//
// Invariant: the ruleset of the release in force is stored. One commit writes the release and its ruleset, and the ruleset
// cannot be deleted while it is in force.

import FirestoreModel
import OrderedStore

/// The rulesets of a database.
enum RulesetRows {
  /// Maximum rulesets of a database, as in the hosted product; also the maximum number of remembered releases.
  static let maximumCount = 2_500

  // MARK: Rulesets

  /// The names and times of all rulesets, in the order of their IDs.
  static func headers(_ view: any ReadView) throws -> [StoredRuleset.Header] {
    var headers: [StoredRuleset.Header] = []
    try view.scan(KeyRange(prefix: FirestoreKeyLayout.rulesets), reverse: false) { key, value, _ in
      headers.append(try StoredRuleset.Header(id: id(key), decoding: value))
      return true
    }
    return headers
  }

  /// A ruleset; nil if there is none with this ID.
  static func ruleset(_ id: String, _ view: any ReadView) throws -> StoredRuleset? {
    guard let header = try view.get(FirestoreKeyLayout.ruleset(id)),
      let content = try view.get(FirestoreKeyLayout.rulesetContent(id))
    else { return nil }
    let decoded = try StoredRuleset.Header(id: id, decoding: header.value)
    return StoredRuleset(
      id: id, createdAt: decoded.createdAt, files: try [StoredRuleset.File](decoding: Array(content.value)))
  }

  /// Adds a ruleset.
  /// - Parameter dropsOldest: whether a full database drops its oldest ruleset that is not in force.
  /// - Throws: RESOURCE_EXHAUSTED for a full database.
  static func add(
    _ ruleset: StoredRuleset, dropsOldest: Bool, _ view: any SequencedTransaction
  ) throws {
    let headers = try headers(view)
    if headers.count >= maximumCount {
      let current = try? RulesRelease.stored(view)?.rulesetID
      let oldest = headers.filter { $0.id != current }.min {
        $0.createdAt.microseconds < $1.createdAt.microseconds
      }
      guard dropsOldest, let oldest else {
        throw FirestoreError.resourceExhausted(
          "The project has \(maximumCount) rulesets, the maximum. Delete some before you create another one.")
      }
      try clear(oldest.id, view)
    }
    try view.set(FirestoreKeyLayout.ruleset(ruleset.header.id), ruleset.header.encoded)
    try view.set(FirestoreKeyLayout.rulesetContent(ruleset.header.id), ruleset.files.encoded)
  }

  /// Deletes a ruleset. Returns false if there is none with this ID.
  /// - Throws: FAILED_PRECONDITION for the ruleset in force.
  static func delete(_ id: String, _ view: any SequencedTransaction) throws -> Bool {
    guard try view.get(FirestoreKeyLayout.ruleset(id)) != nil else { return false }
    guard try RulesRelease.stored(view)?.rulesetID != id else {
      throw FirestoreError.failedPrecondition("The ruleset \(id) is in force in a database.")
    }
    try clear(id, view)
    return true
  }

  private static func clear(_ id: String, _ view: any SequencedTransaction) throws {
    try view.clear(FirestoreKeyLayout.ruleset(id))
    try view.clear(FirestoreKeyLayout.rulesetContent(id))
  }

  private static func id(_ key: UnsafeRawBufferPointer) -> String {
    String(decoding: key.dropFirst(FirestoreKeyLayout.rulesets.count), as: UTF8.self)
  }

  // MARK: Releases

  /// Puts a ruleset in force, stores it unless it is stored, and records the release.
  /// - Parameter time: the wall clock's time, in microseconds since 1970.
  static func release(_ ruleset: StoredRuleset, at time: Int64, _ view: any SequencedTransaction) throws {
    let id = ruleset.header.id
    // The history is in the order of the releases, even if the clock was set back.
    let times = try releaseTimes(view)
    let time = max(time, (times.last ?? -1) + 1)
    try view.set(
      FirestoreKeyLayout.rules, RulesRelease(source: ruleset.source, rulesetID: id, at: time).encoded)
    if try view.get(FirestoreKeyLayout.ruleset(id)) == nil { try add(ruleset, dropsOldest: true, view) }
    for old in times.prefix(max(0, times.count + 1 - maximumCount)) {
      try view.clear(FirestoreKeyLayout.rulesHistory(old))
    }
    try view.set(FirestoreKeyLayout.rulesHistory(time), Array(id.utf8))
  }

  /// The release in force; nil without one.
  static func current(_ view: any ReadView) throws -> CurrentRelease? {
    guard let release = try RulesRelease.stored(view) else { return nil }
    var first = release.microseconds
    try view.scan(KeyRange(prefix: FirestoreKeyLayout.rulesHistory), reverse: false) { key, _, _ in
      first = time(key)
      return false
    }
    return CurrentRelease(
      rulesetID: release.rulesetID, createdAt: Timestamp(microseconds: first),
      updatedAt: Timestamp(microseconds: release.microseconds))
  }

  /// The last releases, newest first.
  static func history(limit: Int, _ view: any ReadView) throws -> [ReleaseRecord] {
    var records: [ReleaseRecord] = []
    try view.scan(KeyRange(prefix: FirestoreKeyLayout.rulesHistory), reverse: true) { key, value, _ in
      let id = String(decoding: value, as: UTF8.self)
      records.append(
        ReleaseRecord(rulesetID: id, time: Timestamp(microseconds: time(key)), isStored: false))
      return records.count < limit
    }
    for index in records.indices {
      records[index].isStored = try view.get(FirestoreKeyLayout.ruleset(records[index].rulesetID)) != nil
    }
    return records
  }

  /// The times of the recorded releases, oldest first.
  private static func releaseTimes(_ view: any ReadView) throws -> [Int64] {
    var times: [Int64] = []
    try view.scan(KeyRange(prefix: FirestoreKeyLayout.rulesHistory), reverse: false) { key, _, _ in
      times.append(time(key))
      return true
    }
    return times
  }

  private static func time(_ key: UnsafeRawBufferPointer) -> Int64 {
    Int64(bigEndianBytes: key.dropFirst(FirestoreKeyLayout.rulesHistory.count))
  }
}
