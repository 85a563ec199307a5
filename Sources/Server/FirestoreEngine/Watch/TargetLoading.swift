// Where a target's documents come from: all of them, the difference since a token, or a window moved on.

import FirestoreModel
import OrderedStore

extension WatchWorker {
  /// Decides whether the stream's caller may listen to a target; returns what the answer depends on.
  func authorise(
    _ target: ActiveTarget, at version: Version, _ stream: WatchStream
  ) async throws -> [DocumentName] {
    let database = stream.database
    let caller = stream.caller
    guard !database.policy.allowsEverything(caller) else { return [] }
    let selection = target.selection
    return try await database.rows.read(at: version) { view in
      switch selection {
      case .query(let query):
        return try database.authorise(caller, .query(query.query), in: view).dependencies
      case .documents(let names):
        var dependencies: [DocumentName] = []
        for name in names {
          let found = try view.document(name)
          dependencies += try database.authorise(caller, .get(name), found: found, in: view).dependencies
        }
        return dependencies
      }
    }
  }

  /// Sends what a new target has to know: everything, or what has changed since `start`.
  func load(
    _ target: inout ActiveTarget, _ request: WatchTarget, from start: Version?, at version: Version,
    _ stream: WatchStream
  ) async throws {
    if case .beginning = request.start {
      try await loadAll(&target, at: version, stream)
      return
    }
    if let start, start <= version,
      version.microseconds - start.microseconds <= EngineLimits.resumeWindow
    {
      do {
        if try await loadChanges(&target, since: start, at: version, stream) { return }
      } catch let error as StoreError where error.code == .versionTooOld {
        // History ends above the token: start over, as below.
      }
    }
    try await emit(.targetChange(TargetChange(.reset, [target.id])), stream)
    let names = try await loadAll(&target, at: version, stream, collectsNames: true)
    let wantsNames = (request.expectedCount ?? 0) > 0
    try await emit(
      .existenceFilter(
        targetID: target.id, count: names.count, names: wantsNames ? BloomFilter(names) : nil), stream)
  }

  /// Sends all documents of a target. Returns their names if they are asked for.
  @discardableResult
  func loadAll(
    _ target: inout ActiveTarget, at version: Version, _ stream: WatchStream, collectsNames: Bool = false
  ) async throws -> [DocumentName] {
    var found: [DocumentName] = []
    let id = target.id
    switch target.selection {
    case .documents(let names):
      let documents = try await stream.database.documents(names, at: version)
      for (name, document) in zip(names, documents) {
        if let document {
          if collectsNames { found.append(name) }
          try await emit(.documentChange(document, targets: [id], removedTargets: []), stream)
        } else {
          try await emit(
            .documentDelete(name, readTime: version.timestamp, removedTargets: [id]), stream)
        }
      }
    case .query(let query):
      var window: [StoredDocument] = []
      let keeps = query.isWindow
      let projection = query.projection
      try await stream.database.results(of: query.unprojected, at: version) { documents in
        if keeps { window += documents }
        if collectsNames { found += documents.map(\.name) }
        for document in documents {
          try await self.emit(
            .documentChange(try document.masked(projection), targets: [id], removedTargets: []), stream)
        }
      }
      target.window = window
    }
    return found
  }

  /// Sends what has changed since a token. False if there is too much of it.
  private func loadChanges(
    _ target: inout ActiveTarget, since start: Version, at version: Version, _ stream: WatchStream
  ) async throws -> Bool {
    let database = stream.database
    if let query = target.query, query.isWindow {
      var old: [StoredDocument] = []
      try await database.results(of: query.unprojected, at: start) { old += $0 }
      target.window = old
      var snapshot = Snapshot()
      try await replaceWindow(of: &target, changed: [:], version, &snapshot, stream)
      try await send(snapshot, version, stream)
      return true
    }
    let paths: [ResourcePath]
    if case .documents(let names) = target.selection {
      paths = names.map(\.path)
    } else {
      guard let changed = try await changedPaths(for: target, since: start, upTo: version, database) else {
        return false
      }
      paths = changed
    }
    var snapshot = Snapshot()
    let changes = try await database.changes(of: paths, from: start, to: version)
    for effect in try Cut(changes, [target]).effects[target.registration] ?? [] {
      if effect.isIn, let document = effect.after {
        snapshot.add(document, to: target)
      } else {
        snapshot.remove(effect.name, now: effect.after, from: target)
      }
    }
    try await send(snapshot, version, stream)
    return true
  }

  private func send(_ snapshot: Snapshot, _ version: Version, _ stream: WatchStream) async throws {
    let hiding = !stream.database.policy.allowsEverything(stream.caller)
    try await emit(try snapshot.responses(at: version.timestamp, hiding: hiding), stream)
  }

  /// The documents in a target's scope that commits have changed since a version; nil if there were too many commits.
  private func changedPaths(
    for target: ActiveTarget, since start: Version, upTo version: Version, _ database: FirestoreDatabase
  ) async throws -> [ResourcePath]? {
    var paths: [ResourcePath] = []
    var seen: Set<ResourcePath> = []
    var position = start
    var left = EngineLimits.resumeRecords
    while position < version {
      let records = try await database.rows.log(after: position, limit: min(left, 500))
      guard let last = records.last else { break }
      for record in records where record.version <= version {
        for path in try CommitRecord.decode(record.payload) where seen.insert(path).inserted {
          guard let name = DocumentName(database: database.name, path: path) else { continue }
          if target.query?.normalized.isInScope(name) == true { paths.append(path) }
        }
      }
      position = last.version
      left -= records.count
      if left <= 0 { return nil }
    }
    return paths
  }

  // MARK: Windows

  /// Moves a limited query's window after changes.
  func moveWindow(
    of target: inout ActiveTarget, _ effects: [Cut.Effect], _ version: Version, _ snapshot: inout Snapshot,
    _ stream: WatchStream
  ) async throws {
    let touches = effects.contains { target.windowIsTouched(by: $0.name, $0.after) }
    guard touches else { return }
    var changed: [ResourcePath: StoredDocument?] = [:]
    for effect in effects { changed[effect.name.path] = .some(effect.after) }
    try await replaceWindow(of: &target, changed: changed, version, &snapshot, stream)
  }

  /// Reads the window anew and reports the difference to the one held.
  private func replaceWindow(
    of target: inout ActiveTarget, changed: [ResourcePath: StoredDocument?], _ version: Version,
    _ snapshot: inout Snapshot, _ stream: WatchStream
  ) async throws {
    guard let query = target.query else { return }
    var window: [StoredDocument] = []
    try await stream.database.results(of: query.unprojected, at: version) { window += $0 }
    var old: [ResourcePath: StoredDocument] = [:]
    for document in target.window { old[document.name.path] = document }
    for document in window {
      let before = old.removeValue(forKey: document.name.path)
      if before?.updateTime != document.updateTime || before?.createTime != document.createTime {
        snapshot.add(document, to: target)
      }
    }
    // What is left has fallen out: deleted, changed, or pushed out by others.
    let missing = old.values.map(\.name).filter { changed[$0.path] == nil }.sorted()
    let now = try await stream.database.documents(missing, at: version)
    for (name, document) in zip(missing, now) { snapshot.remove(name, now: document, from: target) }
    for document in old.values {
      guard let after = changed[document.name.path] else { continue }
      snapshot.remove(document.name, now: after, from: target)
    }
    target.window = window
  }
}
