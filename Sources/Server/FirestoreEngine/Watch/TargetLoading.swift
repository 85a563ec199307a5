// Loads a target's initial documents: all of them, or the changes since a resume token.

import Access
import FirestoreModel
import OrderedStore

extension WatchWorker {
  /// Checks that the stream's caller may listen to `selection`: the target's selection or part of it.
  /// Subscribes the target to changes of the documents that the decision depends on.
  /// - Parameter decided: the policy's decision at `version`; nil if the policy has not decided at this version yet.
  /// - Throws: the policy's denial.
  func authorizeTarget(
    _ target: inout ActiveTarget, _ selection: WatchSelection, at version: Version, _ stream: WatchStream,
    decided: FirestoreDecision? = nil
  ) async throws {
    var version = version
    var suppliedDecision = decided
    while true {
      let decision: FirestoreDecision
      if let decided = suppliedDecision {
        decision = decided
      } else {
        decision = try await authorise(selection, at: version, stream)
      }
      suppliedDecision = nil
      let new = Set(decision.dependencies.map(\.path)).subtracting(target.dependencies)
      if decision.dependsOnTime {
        target.dependsOnTime = true
        targets[target.id]?.dependsOnTime = true
      }
      if new.isEmpty { return }
      target.dependencies.formUnion(new)
      targets[target.id]?.dependencies.formUnion(new)
      let deliveredUpTo = stream.hub.addDependencies(on: new, target.registration, of: stream)
      // Commits up to this version may have changed the new dependencies before the target subscribed to
      // them. Therefore the policy decides again at this version.
      if deliveredUpTo <= version { return }
      version = deliveredUpTo
    }
  }

  /// Maximum number of targets about which the policy decides in one read, so that the read stays short.
  private static let maximumDecisionsPerRead = 16

  /// Repeats the policy's decisions about active targets, many in one read. Removes denied targets.
  /// - Parameter selections: the targets, each with the part of its selection about which the policy decides.
  func authorizeAgain(
    _ selections: [(target: ActiveTarget, selection: WatchSelection)], at version: Version,
    _ stream: WatchStream
  ) async throws {
    var rest = selections[...]
    while !rest.isEmpty {
      let batch = Array(rest.prefix(Self.maximumDecisionsPerRead))
      rest = rest.dropFirst(batch.count)
      let operations = batch.map { authorised($0.selection, stream) }
      // A failed read may concern one target only, so the policy then decides about each target separately.
      let decisions = try? await stream.database.authorise(operations, at: version)
      for (index, item) in batch.enumerated() {
        do {
          var target = item.target
          try await authorizeTarget(
            &target, item.selection, at: version, stream, decided: try decisions?[index]?.get())
        } catch {
          try await revoke(item.target.id, error, stream)
        }
      }
    }
  }

  /// The operation of listening to a selection, for the access policy.
  private func authorised(_ selection: WatchSelection, _ stream: WatchStream) -> AuthorizedOperation {
    let operation: FirestoreOperation =
      switch selection {
      case .query(let query): .list(ListedQuery(query.query, isListen: true))
      case .documents(let names): .get(names)
      }
    return stream.database.operation(operation, of: stream.caller)
  }

  /// Lets the policy in force decide whether the stream's caller may listen to a selection.
  /// - Throws: the policy's denial.
  private func authorise(
    _ selection: WatchSelection, at version: Version, _ stream: WatchStream
  ) async throws -> FirestoreDecision {
    try await stream.database.authorise(authorised(selection, stream), at: version)
  }

  /// Whether the stream's caller could have listened to a selection at a past version, which the client may choose. The changes
  /// since that version reveal names of documents that matched at that version. Without permission the target is reset.
  private func wasPermitted(
    _ selection: WatchSelection, at start: Version, _ stream: WatchStream
  ) async throws -> Bool {
    do {
      _ = try await authorise(selection, at: start, stream)
      return true
    } catch let error where FirestoreDatabase.isDenial(error) { return false }
  }

  /// Sends a new target's documents: all, or the changes since `start`.
  func load(
    _ target: inout ActiveTarget, _ request: WatchTarget, from start: Version?, at version: Version,
    _ stream: WatchStream
  ) async throws {
    if case .beginning = request.start {
      try await loadAll(&target, at: version, stream)
      return
    }
    if let start, start <= version,
      version.microseconds - start.microseconds <= stream.database.options.limits.maximumResumeTokenAge
    {
      do {
        let expected = request.expectedCount.flatMap {
          (0...EngineLimits.maximumResumeCountDocuments).contains($0) ? $0 : nil
        }
        if try await wasPermitted(target.selection, at: start, stream),
          try await loadChanges(&target, since: start, expecting: expected, at: version, stream)
        {
          return
        }
      } catch let error as StoreError where error.code == .versionTooOld {
        // The store has deleted the history after the token's version. The client has to receive everything
        // again.
      }
    }
    try await emit(.targetChange(WatchTargetChange(.reset, [target.id])), stream)
    let tally = try await loadAll(
      &target, at: version, stream, collectsNames: (request.expectedCount ?? 0) > 0)
    try await sendFilter(tally, of: target, stream)
  }

  /// Sends an existence filter: the number of a target's documents and, if their names were collected, a
  /// Bloom filter of them. The client uses it to find documents that it has and the target no longer
  /// contains.
  private func sendFilter(
    _ tally: NameTally, of target: ActiveTarget, _ stream: WatchStream
  ) async throws {
    let names = tally.names.map { BloomFilter($0) }
    try await emit(.existenceFilter(targetID: target.id, count: tally.count, names: names), stream)
  }

  /// Sends all documents of a target.
  func loadAll(_ target: inout ActiveTarget, at version: Version, _ stream: WatchStream) async throws {
    _ = try await loadAll(&target, at: version, stream, collectsNames: false)
  }

  /// Scans all documents of a target, and sends them if `sends` is set. Returns their number and, if
  /// requested and within limits, their names.
  private func loadAll(
    _ target: inout ActiveTarget, at version: Version, _ stream: WatchStream, collectsNames: Bool,
    sends: Bool = true
  ) async throws -> NameTally {
    var tally = NameTally(collectsNames: collectsNames)
    let id = target.id
    let database = stream.database
    let projection = target.projection
    switch target.selection {
    case .documents(let requested):
      var rest = requested[...]
      let pages = stream.makeResultPages()
      while !rest.isEmpty {
        try checkLoad(stream)
        try await pages.reserve()
        let documents = try await database.documents(
          rest, at: version,
          upTo: min(database.options.watchBufferLimits.maximumReadBytes, pages.maximumBytes))
        pages.hold(documents.reduce(0) { $0 + ($1?.encoded.count ?? 0) }, count: documents.count)
        for (name, document) in zip(rest, documents) {
          if let document {
            tally.add(document.name)
            guard sends else { continue }
            try await emit(.documentChange(document, targets: [id], removedTargets: []), stream)
          } else if sends {
            try await emit(
              .documentDelete(name, readTime: version.timestamp, removedTargets: [id]), stream)
          }
        }
        try await flushPage(stream)
        pages.markAccepted()
        rest = rest.dropFirst(documents.count)
      }
    case .query(let query):
      if query.isWindow {
        var window = ResultWindow(query)
        try await database.deliverMatches(of: query, &window, at: version, stream.memory) { documents in
          try self.checkLoad(stream)
          for document in documents {
            tally.add(document.name)
            guard sends else { continue }
            try await self.emit(
              .documentChange(try document.masked(projection), targets: [id], removedTargets: []), stream)
          }
          try await self.flushPage(stream)
        }
        target.window = window
      } else {
        // The documents may be sent in any order, since the client sorts them.
        var all = query.unprojected
        all.needsOrder = false
        try await database.deliverResults(of: all, at: version, stream.memory) { documents in
          try self.checkLoad(stream)
          for document in documents {
            tally.add(document.name)
            guard sends else { continue }
            try await self.emit(
              .documentChange(try document.masked(projection), targets: [id], removedTargets: []), stream)
          }
          try await self.flushPage(stream)
        }
      }
    }
    return tally
  }

  /// Sends the changes since a resume token's version. `expected` is the number of documents that the client
  /// has. If the target had fewer documents then, an existence filter follows, by which the client finds
  /// documents that no longer match. Returns false if there are too many changes, or if the target had more
  /// documents than the client: a filter cannot send the documents that the client lacks.
  private func loadChanges(
    _ target: inout ActiveTarget, since start: Version, expecting expected: Int?, at version: Version,
    _ stream: WatchStream
  ) async throws -> Bool {
    switch target.selection {
    case .documents(let names):
      return try await loadChanges(of: names, target, since: start, expecting: expected, at: version, stream)
    case .query(let query):
      let database = stream.database
      guard let paths = try await changedPaths(for: target, since: start, upTo: version, database) else {
        return false
      }
      var counted: Int?
      // One match more than expected already shows that the client lacks documents.
      let maximumCount = expected.map { $0 + 1 } ?? 0
      if query.isWindow {
        var window = ResultWindow(query)
        var count = 0
        try await database.deliverMatches(
          of: query, &window, at: start, stream.memory, stoppingAfter: maximumCount
        ) { documents in
          try self.checkLoad(stream)
          count += documents.count
        }
        target.window = window
        counted = count
      } else if expected != nil {
        counted = try await count(query, at: start, upTo: maximumCount, stream)
      }
      if let expected, let counted, counted > expected { return false }
      var targets = [target.registration: target]
      do {
        _ = try await deliver(.names(paths, since: start), to: &targets, version, stream)
      } catch let error where error is BoundaryOutOfSync || error is TooManyWindowChanges { return false }
      target.window = targets[target.registration]?.window
      if let expected, let counted, counted < expected {
        // The scan is bounded: the target had fewer than `expected` documents, and only changed documents can
        // have been added.
        let tally = try await loadAll(&target, at: version, stream, collectsNames: true, sends: false)
        try await sendFilter(tally, of: target, stream)
      }
      return true
    }
  }

  /// Sends the changes of a target of named documents. Each document is read once at `start` and once at
  /// `version`.
  private func loadChanges(
    of names: [DocumentName], _ target: ActiveTarget, since start: Version, expecting expected: Int?,
    at version: Version, _ stream: WatchStream
  ) async throws -> Bool {
    let database = stream.database
    var targets = [target.registration: target]
    var counted = 0
    var tally = NameTally(collectsNames: (expected ?? 0) > 0)
    var rest = names[...]
    let pages = stream.makeResultPages()
    while !rest.isEmpty {
      try checkLoad(stream)
      let changes = try await ChangeBatches.read(rest, from: start, to: version, pages, database)
      rest = rest.dropFirst(changes.count)
      for change in changes {
        if change.before != nil { counted += 1 }
        if change.after != nil { tally.add(change.name) }
      }
      if let expected, counted > expected { return false }
      _ = try await deliver(.merged(try SnapshotDelta(changes, [target])), to: &targets, version, stream)
      pages.markAccepted()
    }
    if let expected, counted < expected { try await sendFilter(tally, of: target, stream) }
    return true
  }

  /// The number of documents that a query without limit and offset matched at a version, counted up to
  /// `maximumCount`.
  private func count(
    _ query: PreparedQuery, at version: Version, upTo maximumCount: Int, _ stream: WatchStream
  ) async throws -> Int {
    var structured = query.query.structured
    structured.select = nil
    structured.limit = maximumCount
    var counted = try query.deriving(structured)
    counted.needsOrder = false
    var count = 0
    try await stream.database.deliverResults(of: counted, at: version, stream.memory) { documents in
      try self.checkLoad(stream)
      count += documents.count
    }
    return count
  }

  /// The paths of documents in the target's collections that commits have changed since a version; nil if
  /// there are too many.
  private func changedPaths(
    for target: ActiveTarget, since start: Version, upTo version: Version, _ database: FirestoreDatabase
  ) async throws -> [ResourcePath]? {
    var paths: [ResourcePath] = []
    var seen: Set<ResourcePath> = []
    var position = start
    var remainingRecords = EngineLimits.maximumResumeRecords
    let maximumCount = database.options.watchBufferLimits.maximumNames
    while position < version {
      let records = try await database.rows.log(after: position, limit: min(remainingRecords, 500))
      guard let last = records.last else { break }
      for record in records where record.version <= version {
        for path in try CommitRecord.decode(record.payload) where seen.insert(path).inserted {
          guard let name = DocumentName(database: database.name, path: path) else { continue }
          if target.query?.normalized.isInScope(name) == true { paths.append(path) }
        }
        if paths.count > maximumCount || seen.count > 4 * maximumCount { return nil }
      }
      position = last.version
      remainingRecords -= records.count
      if remainingRecords <= 0 { return nil }
    }
    return paths
  }
}

/// Counts a target's documents and collects their names for an existence filter, within a memory limit. If
/// the names exceed the limit, the filter has only the number of documents. A client that has another number then
/// requests the complete target again.
private struct NameTally {
  private(set) var count = 0
  private(set) var names: [DocumentName]?
  private var bytes = 0

  init(collectsNames: Bool) { names = collectsNames ? [] : nil }

  mutating func add(_ name: DocumentName) {
    count += 1
    guard names != nil else { return }
    bytes += name.path.segments.reduce(64) { $0 + $1.utf8.count + MemoryLayout<String>.stride }
    if bytes <= EngineLimits.maximumFilterNameBytes { names?.append(name) } else { names = nil }
  }
}
