// Proves, or disproves, that a database's rows agree with each other: every document has exactly the entries that it
// should have, and every entry its document.
//
// First all documents are gone over: each entry that one should have must be there, and those that it may have are
// counted. Then all entries are counted; only where there are more are they taken apart, to name those that belong to
// no document. Between two plans a document should have what both have, and may
// have what one of them has. Memory is bounded whatever the database holds: rows are looked up, not collected.

public import FirestoreModel
public import OrderedStore

/// What a check of one database found.
public struct ConsistencyReport: Sendable, Equatable {
  /// What is wrong with a row.
  public enum Fault: String, Sendable, Hashable {
    /// A document lacks an index entry.
    case missingEntry = "missing index entry"
    /// An index entry has no document that it belongs to.
    case strayEntry = "index entry without its document"
    /// A document is not in its collection group's list.
    case missingGroupRow = "missing collection group row"
    /// A collection group's list names a document that does not exist.
    case strayGroupRow = "collection group row without its document"
    /// A row's bytes cannot be read.
    case unreadable = "unreadable row"
  }

  /// One row that is wrong.
  public struct Problem: Sendable, Hashable {
    /// What is wrong.
    public var fault: Fault
    /// The document's path, or the row's key in hexadecimal digits.
    public var place: String
  }

  /// The documents.
  public var documents = 0
  /// The entries of automatic indexes.
  public var automaticEntries = 0
  /// The entries of composite indexes.
  public var compositeEntries = 0
  /// How many rows are wrong.
  public var problemCount = 0
  /// The first of them, at most a hundred.
  public var problems: [Problem] = []

  /// Whether nothing is wrong.
  public var isConsistent: Bool { problemCount == 0 }

  fileprivate mutating func add(_ fault: Fault, _ place: String) {
    problemCount += 1
    if problems.count < 100 { problems.append(Problem(fault: fault, place: place)) }
  }
}

/// Checks databases of a store.
public enum ConsistencyCheck {
  /// Checks one database, which nobody may write to meanwhile: all of it is read at one version.
  /// - Throws: ``StoreError``, or DATA_LOSS if the index state cannot be read.
  public static func run(
    _ name: DatabaseName, in store: any OrderedStore
  ) async throws -> ConsistencyReport {
    let rows = try await store.database(
      named: FirestoreDatabase.catalogueName(name), history: .seconds(EngineLimits.maximumHistorySeconds))
    let version = rows.latestVersion
    return try await rows.read(at: version) { view in
      var pass = Pass(name: name, view: view)
      pass.set = IndexSet(
        try view.get(FirestoreKeyLayout.indexing).map { try IndexState.decode($0.value) } ?? IndexState())
      try pass.documents()
      try pass.groups()
      try pass.count()
      if pass.report.automaticEntries != pass.ownedAutomatic { try pass.strayAutomaticEntries() }
      if pass.report.compositeEntries != pass.ownedComposite { try pass.strayCompositeEntries() }
      return pass.report
    }
  }

  private struct Pass {
    let name: DatabaseName
    let view: any ReadView
    var set = IndexSet.automatic
    var report = ConsistencyReport()
    /// The entries that documents own.
    var ownedAutomatic = 0
    var ownedComposite = 0

    mutating func documents() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.documents]), reverse: false) { key, value, _ in
        report.documents += 1
        guard let path = FirestoreKeyLayout.documentPath(ofRow: Array(key)),
          let name = DocumentName(database: name, path: path),
          let fields = try? DocumentRow.decode(value, name).fields()
        else {
          report.add(.unreadable, ConsistencyCheck.text(Array(key)))
          return true
        }
        try entries(of: path, fields)
        if try view.get(FirestoreKeyLayout.group(path)) == nil { report.add(.missingGroupRow, "\(path)") }
        return true
      }
    }

    private mutating func entries(of path: ResourcePath, _ fields: MapValue) throws {
      let collection = path.segments.dropLast().last ?? ""
      let possible = try DocumentEntries(
        of: fields, at: path, in: set.possible(in: collection), limits: nil)
      let certain =
        set.state.phase == .stable
        ? possible
        : try DocumentEntries(of: fields, at: path, in: set.certain(in: collection), limits: nil)
      let needed = Set(certain.automatic).union(certain.composite.map(\.key))
      for key in possible.automatic {
        if try view.get(key) != nil {
          ownedAutomatic += 1
        } else if needed.contains(key) {
          report.add(.missingEntry, "\(path): \(ConsistencyCheck.text(key))")
        }
      }
      for (key, value) in possible.composite {
        if try view.get(key)?.value == value {
          ownedComposite += 1
        } else if needed.contains(key) {
          report.add(.missingEntry, "\(path): \(ConsistencyCheck.text(key))")
        }
      }
    }

    mutating func count() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.indexes]), reverse: false) { _, _, _ in
        report.automaticEntries += 1
        return true
      }
      let droppedNumbers = set.state.droppedNumbers
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.composites]), reverse: false) { key, _, _ in
        // What is being removed already belongs to nobody.
        if droppedNumbers.isEmpty || !droppedNumbers.contains(ConsistencyCheck.number(Array(key.prefix(5)))) {
          report.compositeEntries += 1
        }
        return true
      }
    }

    mutating func groups() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.groups]), reverse: false) { key, _, _ in
        guard let path = FirestoreKeyLayout.documentPath(ofGroupRow: Array(key)) else {
          report.add(.unreadable, ConsistencyCheck.text(Array(key)))
          return true
        }
        if try view.get(FirestoreKeyLayout.document(path)) == nil { report.add(.strayGroupRow, "\(path)") }
        return true
      }
    }

    mutating func strayAutomaticEntries() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.indexes]), reverse: false) { key, _, _ in
        let key = Array(key)
        guard let path = FirestoreKeyLayout.documentPath(ofIndexEntry: key) else {
          report.add(.unreadable, ConsistencyCheck.text(key))
          return true
        }
        if try !entries(at: path).automatic.contains(key) {
          report.add(.strayEntry, "\(path): \(ConsistencyCheck.text(key))")
        }
        return true
      }
    }

    mutating func strayCompositeEntries() throws {
      let indexes = set.numbered
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.composites]), reverse: false) { key, value, _ in
        let key = Array(key)
        let number = ConsistencyCheck.number(key)
        if set.state.droppedNumbers.contains(number) { return true }
        guard let index = indexes[number] else {
          report.add(.strayEntry, ConsistencyCheck.text(key))
          return true
        }
        guard let row = CompositeRow(key, value, start: index.prefix.count),
          let path = index.path(of: row, in: nil)
        else {
          report.add(.unreadable, ConsistencyCheck.text(key))
          return true
        }
        if try !entries(at: path).composite.contains(where: { $0.key == key && $0.value == Array(value) }) {
          report.add(.strayEntry, "\(path): \(ConsistencyCheck.text(key))")
        }
        return true
      }
    }

    /// What a document may have; nothing if there is none.
    private func entries(at path: ResourcePath) throws -> DocumentEntries {
      guard let name = DocumentName(database: name, path: path),
        let fields = try? view.document(name)?.fields()
      else { return .none }
      let group = set.possible(in: path.segments.dropLast().last ?? "")
      return try DocumentEntries(of: fields, at: path, in: group, limits: nil)
    }
  }

  /// The number of the index that a composite index's row belongs to.
  private static func number(_ key: Key) -> UInt32 {
    key.dropFirst().prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func text(_ key: Key) -> String {
    let digits = Array("0123456789abcdef")
    return String(key.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}
