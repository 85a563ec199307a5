// Plans a commit: computes the rows, index entries and log record that a list of writes produces. This happens in the
// sequencer, which runs one commit of a database at a time, before anything is written.
//
// Example: books/b1 is stored with {n: 1}. A commit with `update {n: 2}` yields:
// - one pending document, with `before` {n: 1} and `fields` {n: 2};
// - one changed row, an index entry to clear (n = 1) and one to insert (n = 2);
// - a footprint (the keys that the lock table compares with other transactions' locks): the document's row
//   and both entries;
// - one committed change, for the log record and the listeners.
//
// Invariants
// 1. Writes apply in order, and each write sees the result of the previous writes. The first failure fails
//    the commit.
// 2. A document's limits are checked once, after all writes. The cost of a commit is bounded by its request,
//    the documents it touches and the work charged to `CommitCostBudget`.
// 3. The plan throws errors that depend on stored data (preconditions, merged contents, cost) only after the access policy
//    has decided about the commit. Therefore a denied caller gets the same error for any stored data.
// 4. A plan is finished only after the policy has allowed the commit.
// 5. Document rows, index entries, group rows (one per document, by which collection group queries find it)
//    and the log record are written together or not at all.

import Access
import FirestoreModel
import OrderedStore

/// The effect of a commit, computed step by step: `apply`, the access policy's decision, `throwFailure`, `finish`, `write`.
struct CommitPlan {
  /// One document that the commit's writes name.
  fileprivate struct PendingDocument {
    let name: DocumentName
    let key: Key
    /// The stored document before the commit; nil if it does not exist.
    let before: StoredDocument?
    let fieldsBefore: MapValue?
    /// The contents after the writes applied so far; nil if the document does not exist.
    var fields: MapValue?
    var createTime: Timestamp?
    var updateTime: Timestamp?
    var transforms = 0
    /// Whether a write of this commit deleted the document.
    var isDeletedHere = false
    /// The validation that the final contents still need.
    var pendingValidation = PendingValidation.nothing
    /// The net effect of the writes so far; nil if they only verify preconditions.
    var netKind: DocumentWrite.Kind?
    /// Whether the writes so far, without deletions, create or update the document; nil before the first such write.
    var kindWithoutDeletions: DocumentWrite.Kind?
    /// Whether a precondition determined `netKind`.
    var isConditional = false
    /// Whether a write verifies the document.
    var isVerified = false
  }

  /// The validation that a document's final contents still need.
  fileprivate enum PendingValidation { case nothing, size, everything }

  private let view: any SequencedTransaction
  private let commitTime: Timestamp
  /// The time that server timestamps get, and that the access policy sees as the time of the request.
  let requestTime: Timestamp
  /// Whether the access policy decides about the commit. If so, the plan throws failures only after the decision.
  private let needsDecisions: Bool
  /// Whether the commit is allowed: the policy has nothing to decide about it, or has allowed it.
  private var isAllowed: Bool
  /// The first failure that depends on stored data.
  private var failure: (any Error)?
  /// The document whose row could not be read; nil if there is none.
  private var unreadable: DocumentName?
  private let indexes: IndexSet
  private let limits: EngineLimits
  private var documents: [PendingDocument] = []
  private var positions: [ResourcePath: Int] = [:]
  private var costBudget: CommitCostBudget
  private(set) var results: [WriteResult] = []

  /// The documents that the commit changes.
  private(set) var changes: [CommittedChange] = []
  private(set) var footprint = LockTable.Footprint()
  private var sets: [(Key, StoredValue)] = []
  /// Rows of new documents, and new index entries. No rows exist under their keys: a document's index entries
  /// are written only with the document, so its previous contents determine which entries exist.
  private var insertions: [(Key, StoredValue)] = []
  private var clears: [Key] = []

  /// - Parameter requestTime: the `requestTime` of an earlier plan of the same commit, if the access policy continues its
  ///   unfinished decision about that plan; nil to use the commit's time.
  init(
    _ view: any SequencedTransaction, _ indexes: IndexSet, _ limits: EngineLimits,
    costBudget: CommitCostBudget, needsDecisions: Bool, requestTime: Timestamp? = nil
  ) {
    self.view = view
    self.indexes = indexes
    self.limits = limits
    self.costBudget = costBudget
    self.needsDecisions = needsDecisions
    isAllowed = !needsDecisions
    commitTime = view.commitVersion.timestamp
    self.requestTime = requestTime ?? commitTime.truncatedToMilliseconds
  }

  // MARK: Applying writes

  /// Applies writes in order.
  ///
  /// If the access policy decides about the commit, keeps failures that depend on stored data for `throwFailure`. An
  /// unmet precondition then does not prevent later writes from being applied, since the policy decides about the
  /// result of all writes.
  /// - Throws: INVALID_ARGUMENT for writes that fail in every state of the database; without a decision, the first
  ///   failure.
  mutating func apply(_ writes: [Write]) throws {
    // The loop may end at a write that fails because of stored data, before a later faulty write. If that hid the later
    // fault, a caller whom the policy denies could infer the stored data.
    if needsDecisions { try throwRequestFault(writes) }
    for write in writes {
      do { try apply(write) } catch let fault as RequestFault {
        if !needsDecisions { try validate() }
        throw fault.error
      } catch {
        fail(error)
        // The results of this write and of later writes are unknown. The failure depends on this document, so the policy
        // decides about the write too.
        if needsDecisions { addUnapplied(write) }
        break
      }
      if failure != nil, !needsDecisions { break }
    }
    if !needsDecisions { try throwFailure() }
  }

  /// An error of a write that fails in every state of the database.
  private struct RequestFault: Error {
    let error: FirestoreError
  }

  /// Throws the first fault of writes that fail in every state of the database. Reads nothing.
  private func throwRequestFault(_ writes: [Write]) throws {
    var transforms: [ResourcePath: Int] = [:]
    var deleted: Set<ResourcePath> = []
    for write in writes {
      let path = write.document.path
      if let precondition = write.precondition {
        if precondition == .exists(true), deleted.contains(path) {
          throw deletedEarlier(write.document).error
        }
        if case .updateTime(let required) = precondition, required > commitTime {
          throw futureTime(required, of: write.document).error
        }
      }
      if !write.allTransforms.isEmpty {
        transforms[path, default: 0] += write.allTransforms.count
        if transforms[path, default: 0] > limits.data.transformsPerDocument { throw tooManyTransforms.error }
      }
      switch write.operation {
      case .delete: deleted.insert(path)
      case .update, .transform: deleted.remove(path)
      case .verify: break
      }
    }
  }

  private func deletedEarlier(_ name: DocumentName) -> RequestFault {
    RequestFault(
      error: .invalidArgument("Cannot update \(name): an earlier write of the same commit deletes it."))
  }

  private func futureTime(_ required: Timestamp, of name: DocumentName) -> RequestFault {
    RequestFault(
      error: .invalidArgument(
        "The precondition's update_time lies in the future: it is \(required.microseconds) for \(name), and the commit's time "
          + "is \(commitTime.microseconds) (microseconds since 1970)."))
  }

  private var tooManyTransforms: RequestFault {
    RequestFault(
      error: .invalidArgument(
        "Cannot apply more than \(limits.data.transformsPerDocument) field transforms to one document in a commit."
      ))
  }

  private mutating func fail(_ error: any Error) {
    if failure == nil { failure = error }
  }

  /// Records a failed write in the net effect on its document, so that the access policy decides about the write too.
  private mutating func addUnapplied(_ write: Write) {
    if let position = positions[write.document.path] {
      documents[position].add(write)
    } else {
      unreadable = write.document
    }
  }

  /// Throws the first failure of `apply`, or an invalid result of an earlier write.
  func throwFailure() throws {
    // The results of writes before the failure may be invalid too. The first error is reported.
    try validate()
    if let failure { throw failure }
  }

  private mutating func apply(_ request: Write) throws {
    let write = request.stored
    let position = try loadDocument(write.document)
    var document = documents[position]
    if let precondition = write.precondition {
      if precondition == .exists(true), document.isDeletedHere, document.fields == nil {
        throw deletedEarlier(document.name)
      }
      if case .updateTime(let required) = precondition, required > commitTime {
        throw futureTime(required, of: document.name)
      }
      do { try precondition.check(document.name, updateTime: document.updateTime) } catch {
        fail(error)
        guard needsDecisions else { return }
      }
    }
    document.transforms += write.allTransforms.count
    if document.transforms > limits.data.transformsPerDocument {
      throw tooManyTransforms
    }
    let outcome = try write.apply(to: document.fields, requestTime: requestTime) { count in
      try costBudget.charge(elements: count)
    }
    if needsDecisions { document.add(write) }
    if write.hasChanged(document.fields, into: outcome.fields) {
      let exists = outcome.fields != nil
      document.fields = outcome.fields
      document.createTime = exists ? document.createTime ?? commitTime : nil
      document.updateTime = exists ? commitTime : nil
      // Each write was already validated separately. So a complete replacement needs only a check of its
      // size. The result of an update mask or transforms needs every check.
      document.pendingValidation = write.mask == nil && write.allTransforms.isEmpty ? .size : .everything
    }
    var result = WriteResult(updateTime: document.updateTime, transformResults: outcome.transformResults)
    if case .delete = write.operation {
      result.updateTime = nil
      document.isDeletedHere = true
    }
    documents[position] = document
    results.append(result)
  }

  /// Validates the contents that the writes so far produced.
  private func validate() throws(FirestoreError) {
    for document in documents {
      guard let fields = document.fields, document.pendingValidation != .nothing else { continue }
      try DocumentValidation.validateSize(fields, of: document.name, limits: limits.data)
      if document.pendingValidation == .everything {
        try DocumentValidation.validate(fields, limits: limits.data)
      }
    }
  }

  /// Loads a document unless it is loaded, and charges its size. Returns its index in `documents`.
  private mutating func loadDocument(_ name: DocumentName) throws -> Int {
    if let position = positions[name.path] { return position }
    let key = FirestoreKeyLayout.document(name.path)
    let row = try view.get(key)
    let before = try row.map { try DocumentRow.decode($0.value, name).withCachedFields() }
    let fields = try before?.fields()
    documents.append(
      PendingDocument(
        name: name, key: key, before: before, fieldsBefore: fields, fields: fields,
        createTime: before?.createTime, updateTime: before?.updateTime))
    positions[name.path] = documents.count - 1
    // The document is charged after it was added, so that the policy decides about it even if the charge fails.
    try costBudget.charge(bytes: row?.value.count ?? 0)
    return documents.count - 1
  }

  /// The document at an index of `documents`, which are in the order in which the writes first name them. Nil
  /// if the document does not exist after the commit.
  func document(at position: Int) -> StoredDocument? {
    documents.indices.contains(position) ? documents[position].snapshot : nil
  }

  // MARK: Access

  /// Records that the access policy has allowed the commit.
  mutating func markAllowed() { isAllowed = true }

  /// The net effect of the commit on each document, for the access policy.
  var netWrites: [DocumentWrite] {
    let unreadable = unreadable.map { [DocumentWrite($0, .update)] } ?? []
    return documents.flatMap { document -> [DocumentWrite] in
      var writes: [DocumentWrite] = []
      if document.isVerified { writes.append(DocumentWrite(document.name, .verify)) }
      if let kind = document.netKind {
        writes.append(DocumentWrite(document.name, kind, isConditional: document.isConditional))
      }
      return writes
    } + unreadable
  }

  /// The documents before and after the commit, for the access policy.
  /// - Parameter part: the part of the commit that the policy decides.
  func documentView(_ part: DecisionPart) -> any DocumentView {
    CommitDocumentView(view: view, time: requestTime, part: part) { name in
      self.positions[name.path].map { self.documents[$0] }
    }
  }

  /// The cost so far, in bytes as ``CommitCostBudget`` counts them.
  var cost: Int { costBudget.cost }

  /// The update times of the documents before the commit, in the order in which the writes first name them; nil for a
  /// missing document.
  var updateTimesBefore: [Timestamp?] { documents.map { $0.before?.updateTime } }

  /// The update time of any document before the commit; nil if the document does not exist.
  /// - Throws: the store's errors.
  func updateTimeBefore(_ name: DocumentName) throws -> Timestamp? {
    if let position = positions[name.path] { return documents[position].before?.updateTime }
    return try view.updateTime(of: name)
  }

  // MARK: Rows

  /// Computes rows, index entries and the footprint.
  mutating func finish() throws {
    precondition(footprint.keys.isEmpty && changes.isEmpty, "invariant: a plan is finished once")
    precondition(isAllowed, "invariant: the access policy allows a commit before its plan is finished")
    footprint.keys.reserveCapacity(documents.count)
    changes.reserveCapacity(documents.count)
    var groups: [Key] = []
    groups.reserveCapacity(documents.count)
    defer { footprint.entries.append(groups) }
    for document in documents {
      footprint.keys.append(document.key)
      // A document counts as changed if its times changed, even with equal fields. If the commit deletes it
      // and creates it again, it is a new document. If the commit changes it and changes it back, it has the
      // commit's update time.
      let hasNewTimes =
        document.createTime != document.before?.createTime
        || document.updateTime != document.before?.updateTime
      guard hasNewTimes || document.fields != document.fieldsBefore else { continue }
      let path = document.name.path
      let collection = path.segments.dropLast().last ?? ""
      let entriesBefore = try document.fieldsBefore.map {
        try DocumentEntries(
          of: $0, at: path, in: indexes.possible(in: collection), limits: nil,
          budget: costBudget.entryBudget(replacing: nil)
        )
      }
      let bytesBefore = entriesBefore?.bytes ?? 0
      try costBudget.charge(bytes: bytesBefore)
      let entriesAfter = try document.fields.map {
        try DocumentEntries(
          of: $0, at: path, in: indexes.maintained(in: collection), limits: limits,
          budget: costBudget.entryBudget(replacing: bytesBefore))
      }
      try updateIndexEntries(entriesBefore ?? .none, for: entriesAfter ?? .none)
      // The group row is in the footprint even if it does not change. A transaction that queried the
      // collection group holds a lock on a range of group rows, and a changed document may enter or leave the
      // query's result.
      let group = FirestoreKeyLayout.group(path)
      groups.append(group)
      let after = document.snapshot
      switch (document.before, after) {
      case (nil, let after?):
        try insert(document.key, DocumentRow.encode(after))
        try insert(group, [])
      case (_?, let after?):
        let row = DocumentRow.encode(after)
        try costBudget.write(bytes: document.key.count + row.count)
        sets.append((document.key, row))
      case (_?, nil): try clear([document.key, group])
      case (nil, nil): break
      }
      precondition(
        after.map { $0.name == document.name } ?? true, "invariant: a row's document has the name of its key")
      changes.append(CommittedChange(name: document.name, before: document.before, after: after))
    }
  }

  /// Adds the difference between a document's old and new index entries. Unchanged entries stay.
  private mutating func updateIndexEntries(
    _ before: DocumentEntries, for after: DocumentEntries
  ) throws(FirestoreError) {
    let (removed, added) = IndexEntries.difference(from: before.automatic, to: after.automatic)
    try addToFootprint(before.automatic, and: added)
    try clear(removed)
    for key in added { try insert(key, []) }
    guard !before.composite.isEmpty || !after.composite.isEmpty else { return }
    let keysBefore = before.composite.map(\.key)
    let composite = IndexEntries.difference(from: keysBefore, to: after.composite.map(\.key))
    try addToFootprint(keysBefore, and: composite.added)
    try clear(composite.removed)
    // A composite entry's value depends only on its key, so an entry with an unchanged key is unchanged.
    var rest = after.composite[...]
    for key in composite.added {
      while let entry = rest.popFirst() {
        guard entry.key == key else { continue }
        try insert(key, entry.value)
        break
      }
    }
  }

  /// Adds a document's old and added index entries to the footprint. Charges the added entries; the old
  /// entries are charged already.
  private mutating func addToFootprint(_ before: [Key], and added: [Key]) throws(FirestoreError) {
    try costBudget.charge(bytes: added.reduce(0) { $0 + $1.count })
    if !before.isEmpty { footprint.entries.append(before) }
    if !added.isEmpty { footprint.entries.append(added) }
  }

  private mutating func insert(_ key: Key, _ value: StoredValue) throws(FirestoreError) {
    try costBudget.write(bytes: key.count + value.count)
    insertions.append((key, value))
  }

  private mutating func clear(_ keys: [Key]) throws(FirestoreError) {
    try costBudget.write(bytes: keys.reduce(0) { $0 + $1.count })
    clears += keys
  }

  /// Writes all rows and the log record. Writes nothing if no document changes.
  func write(to view: any SequencedTransaction) throws {
    guard !changes.isEmpty else { return }
    assert(
      (insertions.map(\.0) + sets.map(\.0) + clears).count
        == Set(insertions.map(\.0) + sets.map(\.0) + clears).count,
      "invariant: a commit changes each key once")
    for key in clears { try view.clear(key) }
    for (key, value) in sets { try view.set(key, value) }
    for (key, value) in insertions { try view.insert(key, value) }
    try view.log(CommitRecord.encode(changes), CommitRecord(version: view.commitVersion, changes: changes))
  }
}

extension CommitPlan.PendingDocument {
  /// The document after the writes applied so far; nil if it does not exist.
  fileprivate var snapshot: StoredDocument? {
    guard let fields, let createTime, let updateTime else { return nil }
    if let before, before.updateTime == updateTime, before.createTime == createTime { return before }
    return StoredDocument(name: name, createTime: createTime, updateTime: updateTime, fields: fields)
  }

  /// Adds a write to the net effect. The first write decides between creating and updating, by its precondition or, without
  /// one, by whether the document is stored. If the last write deletes the document, the net effect is a deletion.
  fileprivate mutating func add(_ write: Write) {
    switch write.operation {
    case .verify: isVerified = true
    case .delete, .update, .transform:
      if netKind == nil { isConditional = write.precondition != nil }
      var kind = kindWithoutDeletions ?? (before == nil ? .create : .update)
      if let precondition = write.precondition, kindWithoutDeletions == nil {
        kind = precondition == .exists(false) ? .create : .update
      }
      kindWithoutDeletions = kind
      netKind = kind
      if case .delete = write.operation { netKind = .delete }
    }
  }
}

/// The documents that a policy may read during a commit.
private struct CommitDocumentView: DocumentView {
  let view: any ReadView
  let time: Timestamp
  let part: DecisionPart
  /// The pending document of a name; nil if the commit does not write the document.
  let pending: (DocumentName) -> CommitPlan.PendingDocument?

  func document(_ name: DocumentName) throws -> Document? {
    guard let pending = pending(name) else { return try view.document(name)?.document() }
    guard let before = pending.before, let fields = pending.fieldsBefore else { return nil }
    return Document(name: name, fields: fields, createTime: before.createTime, updateTime: before.updateTime)
  }

  func documentAfter(_ name: DocumentName) throws -> Document? {
    guard let pending = pending(name) else { return try view.document(name)?.document() }
    guard let fields = pending.fields, let createTime = pending.createTime,
      let updateTime = pending.updateTime
    else { return nil }
    return Document(name: name, fields: fields, createTime: createTime, updateTime: updateTime)
  }

  func exists(_ name: DocumentName) throws -> Bool {
    if let pending = pending(name) { return pending.before != nil }
    return try view.get(FirestoreKeyLayout.document(name.path)) != nil
  }
}
