// What a list of writes makes of the database: computed in the sequencer, before anything is written.
//
// Invariant: writes apply in order, each to the result of those before it; the first that fails fails all. A document's
// limits hold for what the commit makes of it in the end, and are looked at once: a commit costs its request, the documents
// that it touches, and what `CommitWork` counts.
// Rows, index entries, group rows and log record of a commit are written together or not at all.

import FirestoreModel
import OrderedStore

/// The effect of a commit while it is worked out.
struct CommitPlan {
  /// One document that the commit touches.
  fileprivate struct Target {
    let name: DocumentName
    let key: Key
    /// As stored before the commit.
    let before: StoredDocument?
    let fieldsBefore: MapValue?
    /// As it stands after the writes applied so far.
    var fields: MapValue?
    var createTime: Timestamp?
    var updateTime: Timestamp?
    var transforms = 0
    /// Whether a write of this commit has deleted it.
    var isDeletedHere = false
    /// What is yet to be checked of it.
    var unchecked = Unchecked.nothing
    /// The document as it stands, once somebody has wanted it encoded.
    var made: StoredDocument?
  }

  /// What writes have left unchecked of a document.
  fileprivate enum Unchecked { case nothing, size, everything }

  /// What one write did, for the policy.
  private struct Step {
    var operation: AccessOperation
    var name: DocumentName
    var before: StoredDocument?
    var after: StoredDocument?
  }

  private let view: any SequencedTransaction
  private let commitTime: Timestamp
  private let requestTime: Timestamp
  private let recordsSteps: Bool
  private let indexes: IndexSet
  private let limits: EngineLimits
  private var targets: [Target] = []
  private var positions: [ResourcePath: Int] = [:]
  private var steps: [Step] = []
  private var work: CommitWork
  private(set) var results: [WriteResult] = []

  /// The documents that end up changed.
  private(set) var changes: [DocumentChange] = []
  private(set) var footprint = LockTable.Footprint()
  private var sets: [(Key, StoredValue)] = []
  /// Rows whose keys hold none: of new documents, and index entries that the document did not have. Only a document
  /// itself writes its entries, so that what it was tells which there are.
  private var insertions: [(Key, StoredValue)] = []
  private var clears: [Key] = []

  init(
    _ view: any SequencedTransaction, _ indexes: IndexSet, _ limits: EngineLimits, work: CommitWork,
    recordsSteps: Bool
  ) {
    self.view = view
    self.indexes = indexes
    self.limits = limits
    self.work = work
    self.recordsSteps = recordsSteps
    commitTime = view.commitVersion.timestamp
    requestTime = commitTime.truncatedToMilliseconds
  }

  // MARK: Applying writes

  /// Applies writes, each to what those before it made.
  mutating func apply(_ writes: [Write]) throws {
    do { for write in writes { try apply(write) } } catch {
      // Of two writes that fail, the first is told of.
      try validate()
      throw error
    }
    try validate()
  }

  private mutating func apply(_ asked: Write) throws {
    let write = asked.stored
    let position = try position(of: write.document)
    var target = targets[position]
    if let precondition = write.precondition {
      // No state of the database could let such a commit through, so it is the request that is wrong.
      if precondition == .exists(true), target.isDeletedHere, target.fields == nil {
        throw FirestoreError.invalidArgument(
          "Cannot update \(target.name): an earlier write of the same commit deletes it.")
      }
      if case .updateTime(let required) = precondition, required > commitTime {
        throw FirestoreError.invalidArgument(
          "The precondition's update_time lies in the future: \(target.name) is asked for as of \(required.microseconds), and it is "
            + "\(commitTime.microseconds) (microseconds since 1970).")
      }
      try precondition.check(target.name, updateTime: target.updateTime)
    }
    target.transforms += write.allTransforms.count
    if target.transforms > limits.data.transformsPerDocument {
      throw FirestoreError.invalidArgument(
        "Cannot apply more than \(limits.data.transformsPerDocument) field transforms to one document in a commit."
      )
    }
    let outcome = try write.apply(to: target.fields, requestTime: requestTime) { count in
      try work.spend(elements: count)
    }
    let old = recordsSteps ? target.snapshot : nil
    if write.hasChanged(target.fields, into: outcome.fields) {
      let exists = outcome.fields != nil
      target.fields = outcome.fields
      target.createTime = exists ? target.createTime ?? commitTime : nil
      target.updateTime = exists ? commitTime : nil
      // What a write alone brings was checked before; what it makes together with others is not.
      target.unchecked = write.mask == nil && write.allTransforms.isEmpty ? .size : .everything
      target.made = nil
      if recordsSteps {
        target.made = target.snapshot
        try work.spend(bytes: target.made?.encoded.count ?? 0)
      }
    }
    var result = WriteResult(updateTime: target.updateTime, transformResults: outcome.transformResults)
    if case .delete = write.operation {
      result.updateTime = nil
      target.isDeletedHere = true
    }
    targets[position] = target
    results.append(result)
    if recordsSteps {
      steps.append(
        Step(operation: write.access(existing: old), name: target.name, before: old, after: target.snapshot))
    }
  }

  /// Checks what the writes so far have made of their documents.
  private func validate() throws(FirestoreError) {
    for target in targets {
      guard let fields = target.fields, target.unchecked != .nothing else { continue }
      try DocumentValidation.validateSize(fields, of: target.name, limits: limits.data)
      if target.unchecked == .everything { try DocumentValidation.validate(fields, limits: limits.data) }
    }
  }

  private mutating func position(of name: DocumentName) throws -> Int {
    if let position = positions[name.path] { return position }
    let key = KeyLayout.document(name.path)
    let row = try view.get(key)
    try work.spend(bytes: row?.value.count ?? 0)
    let before = try row.map { try DocumentRow.decode($0.value, name).decodedOnce() }
    let fields = try before?.fields()
    targets.append(
      Target(
        name: name, key: key, before: before, fieldsBefore: fields, fields: fields,
        createTime: before?.createTime, updateTime: before?.updateTime))
    positions[name.path] = targets.count - 1
    return targets.count - 1
  }

  /// What the commit makes of one of its documents, by first mention.
  func document(at position: Int) -> StoredDocument? {
    targets.indices.contains(position) ? targets[position].snapshot : nil
  }

  // MARK: Access

  /// Asks the policy about every write.
  func authorise(_ caller: Caller, _ policy: any AccessPolicy) throws {
    let access = CommitAccessView(view: view, time: requestTime) { name in
      self.positions[name.path].map { self.targets[$0].snapshot }
    }
    for step in steps {
      let decision = try policy.decide(
        caller, step.operation, before: step.before, after: step.after, view: access)
      if let denial = decision.denial { throw denial }
    }
  }

  // MARK: Rows

  /// Works out rows, index entries and the footprint.
  mutating func finish() throws {
    for target in targets {
      footprint.keys.append(target.key)
      // A document deleted and created again is another document, even with the same fields; one that was changed and
      // changed back has the time of the commit, which the results of its writes tell.
      let hasNewTimes =
        target.createTime != target.before?.createTime || target.updateTime != target.before?.updateTime
      guard hasNewTimes || target.fields != target.fieldsBefore else { continue }
      let path = target.name.path
      let collection = path.segments.dropLast().last ?? ""
      let entriesBefore = try target.fieldsBefore.map {
        try DocumentEntries(
          of: $0, at: path, in: indexes.possible(in: collection), limits: nil, room: work.room(replacing: nil)
        )
      }
      let bytesBefore = entriesBefore?.bytes ?? 0
      try work.spend(bytes: bytesBefore)
      let entriesAfter = try target.fields.map {
        try DocumentEntries(
          of: $0, at: path, in: indexes.kept(in: collection), limits: limits,
          room: work.room(replacing: bytesBefore))
      }
      try exchange(entriesBefore ?? .none, for: entriesAfter ?? .none)
      // Also where the row stays as it is: a transaction that queried the collection group holds the rows' range, and
      // a changed document may leave or enter its result.
      let group = KeyLayout.group(path)
      footprint.entries.append([group])
      let after = target.snapshot
      switch (target.before, after) {
      case (nil, let after?):
        try insert(target.key, DocumentRow.encode(after))
        try insert(group, [])
      case (_?, let after?):
        let row = DocumentRow.encode(after)
        try work.write(bytes: target.key.count + row.count)
        sets.append((target.key, row))
      case (_?, nil): try clear([target.key, group])
      case (nil, nil): break
      }
      changes.append(DocumentChange(name: target.name, before: target.before, after: after))
    }
  }

  /// Notes what becomes of a document's index entries. Those that stay are kept once.
  private mutating func exchange(
    _ before: DocumentEntries, for after: DocumentEntries
  ) throws(FirestoreError) {
    let (removed, added) = IndexEntries.difference(from: before.automatic, to: after.automatic)
    try touch(before.automatic, and: added)
    try clear(removed)
    insertions.reserveCapacity(insertions.count + added.count + 2)
    for key in added { try insert(key, []) }
    guard !before.composite.isEmpty || !after.composite.isEmpty else { return }
    let keysBefore = before.composite.map(\.key)
    let composite = IndexEntries.difference(from: keysBefore, to: after.composite.map(\.key))
    try touch(keysBefore, and: composite.added)
    try clear(composite.removed)
    // A row's value follows from its key, so that one that stays is as it was.
    var rest = after.composite[...]
    for key in composite.added {
      while let entry = rest.popFirst() {
        guard entry.key == key else { continue }
        try insert(key, entry.value)
        break
      }
    }
  }

  /// Adds a document's entries to the footprint: those that it had, which are counted already, and those that are new.
  private mutating func touch(_ before: [Key], and added: [Key]) throws(FirestoreError) {
    try work.spend(bytes: added.reduce(0) { $0 + $1.count })
    footprint.entries.append(before)
    footprint.entries.append(added)
  }

  private mutating func insert(_ key: Key, _ value: StoredValue) throws(FirestoreError) {
    try work.write(bytes: key.count + value.count)
    insertions.append((key, value))
  }

  private mutating func clear(_ keys: [Key]) throws(FirestoreError) {
    try work.write(bytes: keys.reduce(0) { $0 + $1.count })
    clears += keys
  }

  /// Writes everything; nothing at all if no document changes.
  func write(to view: any SequencedTransaction) throws {
    guard !changes.isEmpty else { return }
    for key in clears { try view.clear(key) }
    for (key, value) in sets { try view.set(key, value) }
    for (key, value) in insertions { try view.insert(key, value) }
    try view.log(CommitRecord.encode(changes), CommitRecord(version: view.commitVersion, changes: changes))
  }
}

extension CommitPlan.Target {
  /// The document as it stands; nil if it does not exist.
  fileprivate var snapshot: StoredDocument? {
    if let made { return made }
    guard let fields, let createTime, let updateTime else { return nil }
    if let before, before.updateTime == updateTime, before.createTime == createTime { return before }
    return StoredDocument(name: name, createTime: createTime, updateTime: updateTime, fields: fields)
  }
}

extension Write {
  fileprivate var isVerify: Bool {
    if case .verify = operation { return true }
    return false
  }

  /// What the write means to a policy.
  fileprivate func access(existing: StoredDocument?) -> AccessOperation {
    switch operation {
    case .delete(let name): .delete(name)
    case .verify(let name): .get(name)
    case .update(let name, _), .transform(let name, _): existing == nil ? .create(name) : .update(name)
    }
  }
}

/// What a policy sees inside a commit.
private struct CommitAccessView: AccessView {
  let view: any ReadView
  let time: Timestamp
  /// The document after the commit: nil if the commit does not touch it, else what becomes of it.
  let after: (DocumentName) -> StoredDocument??

  func document(_ name: DocumentName) throws -> StoredDocument? { try view.document(name) }

  func documentAfter(_ name: DocumentName) throws -> StoredDocument? {
    if let known = after(name) { return known }
    return try view.document(name)
  }
}
