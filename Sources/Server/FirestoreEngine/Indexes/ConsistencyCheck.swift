// Checks that a database's rows are consistent: every document has exactly the required index entries, and
// every index entry has its document.
//
// The check first scans all documents. For each document it looks up every entry that the document may have,
// counts the existing ones, and reports missing entries that are required. Then it counts all index entries.
// If the numbers differ, it decodes all entries to find those without a document. While the configured
// indexes change, a document must have the entries of all complete plans, and may have entries of the other
// plans (see `IndexState`). Rows are looked up one by one instead of being collected, so memory is bounded
// for a database of any size.

public import FirestoreModel
public import OrderedStore

/// The result of checking one database.
public struct ConsistencyReport: Sendable, Equatable {
  /// The kind of an inconsistency.
  public enum Fault: String, Sendable, Hashable {
    /// A document lacks an index entry.
    case missingEntry = "missing index entry"
    /// An index entry has no matching document.
    case strayEntry = "index entry without its document"
    /// A document is missing from its collection group.
    case missingGroupRow = "missing collection group row"
    /// A collection group row names a document that does not exist.
    case strayGroupRow = "collection group row without its document"
    /// A row cannot be decoded.
    case unreadable = "unreadable row"
  }

  /// One inconsistent row.
  public struct Problem: Sendable, Hashable {
    /// The kind of inconsistency.
    public var fault: Fault
    /// The document's path, or the row's key in hexadecimal.
    public var location: String
  }

  /// The number of documents.
  public var documents = 0
  /// The number of entries in automatic indexes.
  public var automaticEntries = 0
  /// The number of entries in composite indexes.
  public var compositeEntries = 0
  /// The number of inconsistent rows.
  public var problemCount = 0
  /// The first inconsistent rows, at most 100.
  public var problems: [Problem] = []

  /// Whether no row is inconsistent.
  public var isConsistent: Bool { problemCount == 0 }

  fileprivate mutating func add(_ fault: Fault, _ location: String) {
    problemCount += 1
    if problems.count < 100 { problems.append(Problem(fault: fault, location: location)) }
  }
}

/// Checks databases of a store.
public enum ConsistencyCheck {
  /// Checks one database at one version. Nothing may write to the database during the check.
  /// - Throws: ``StoreError``, or DATA_LOSS if the index state cannot be read.
  public static func run(
    _ name: DatabaseName, in store: any OrderedStore
  ) async throws -> ConsistencyReport {
    let rows = try await store.provisionalDatabase(
      named: FirestoreDatabase.catalogueName(name), history: .seconds(EngineLimits.maximumHistorySeconds))
    let version = rows.latestVersion
    return try await rows.read(at: version) { view in
      var check = DatabaseCheck(name: name, view: view)
      check.indexSet = IndexSet(
        try view.get(FirestoreKeyLayout.indexing).map { try IndexState.decode($0.value) } ?? IndexState())
      try check.checkDocuments()
      try check.checkGroupRows()
      try check.countEntries()
      if check.report.automaticEntries != check.ownedAutomatic { try check.reportStrayAutomaticEntries() }
      if check.report.compositeEntries != check.ownedComposite { try check.reportStrayCompositeEntries() }
      return check.report
    }
  }

  private struct DatabaseCheck {
    let name: DatabaseName
    let view: any ReadView
    var indexSet = IndexSet.automatic
    var report = ConsistencyReport()
    /// The numbers of existing automatic and composite entries that belong to documents.
    var ownedAutomatic = 0
    var ownedComposite = 0

    mutating func checkDocuments() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.documents]), reverse: false) { key, value, _ in
        report.documents += 1
        guard let path = FirestoreKeyLayout.documentPath(ofRow: Array(key)),
          let name = DocumentName(database: name, path: path),
          let fields = try? DocumentRow.decode(value, name).fields()
        else {
          report.add(.unreadable, ConsistencyCheck.hexadecimal(Array(key)))
          return true
        }
        try checkEntries(of: path, fields)
        if try view.get(FirestoreKeyLayout.group(path)) == nil { report.add(.missingGroupRow, "\(path)") }
        return true
      }
    }

    private mutating func checkEntries(of path: ResourcePath, _ fields: MapValue) throws {
      let collection = path.segments.dropLast().last ?? ""
      let possible = try DocumentEntries(
        of: fields, at: path, in: indexSet.possible(in: collection), limits: nil)
      let required =
        indexSet.state.phase == .stable
        ? possible
        : try DocumentEntries(of: fields, at: path, in: indexSet.required(in: collection), limits: nil)
      let needed = Set(required.automatic).union(required.composite.map(\.key))
      for key in possible.automatic {
        if try view.get(key) != nil {
          ownedAutomatic += 1
        } else if needed.contains(key) {
          report.add(.missingEntry, "\(path): \(ConsistencyCheck.hexadecimal(key))")
        }
      }
      for (key, value) in possible.composite {
        if try view.get(key)?.value == value {
          ownedComposite += 1
        } else if needed.contains(key) {
          report.add(.missingEntry, "\(path): \(ConsistencyCheck.hexadecimal(key))")
        }
      }
    }

    mutating func countEntries() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.indexes]), reverse: false) { _, _, _ in
        report.automaticEntries += 1
        return true
      }
      let droppedNumbers = indexSet.state.droppedNumbers
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.composites]), reverse: false) { key, _, _ in
        // Entries of dropped indexes are not counted, since they are being removed.
        if droppedNumbers.isEmpty || !droppedNumbers.contains(ConsistencyCheck.number(Array(key.prefix(5)))) {
          report.compositeEntries += 1
        }
        return true
      }
    }

    mutating func checkGroupRows() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.groups]), reverse: false) { key, _, _ in
        guard let path = FirestoreKeyLayout.documentPath(ofGroupRow: Array(key)) else {
          report.add(.unreadable, ConsistencyCheck.hexadecimal(Array(key)))
          return true
        }
        if try view.get(FirestoreKeyLayout.document(path)) == nil { report.add(.strayGroupRow, "\(path)") }
        return true
      }
    }

    mutating func reportStrayAutomaticEntries() throws {
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.indexes]), reverse: false) { key, _, _ in
        let key = Array(key)
        guard let path = FirestoreKeyLayout.documentPath(ofIndexEntry: key) else {
          report.add(.unreadable, ConsistencyCheck.hexadecimal(key))
          return true
        }
        if try !entries(at: path).automatic.contains(key) {
          report.add(.strayEntry, "\(path): \(ConsistencyCheck.hexadecimal(key))")
        }
        return true
      }
    }

    mutating func reportStrayCompositeEntries() throws {
      let indexes = indexSet.indexesByNumber
      try view.scan(KeyRange(prefix: [FirestoreKeyLayout.composites]), reverse: false) { key, value, _ in
        let key = Array(key)
        let number = ConsistencyCheck.number(key)
        if indexSet.state.droppedNumbers.contains(number) { return true }
        guard let index = indexes[number] else {
          report.add(.strayEntry, ConsistencyCheck.hexadecimal(key))
          return true
        }
        guard let row = CompositeRow(key, value, start: index.prefix.count),
          let path = index.path(of: row, in: nil)
        else {
          report.add(.unreadable, ConsistencyCheck.hexadecimal(key))
          return true
        }
        if try !entries(at: path).composite.contains(where: { $0.key == key && $0.value == Array(value) }) {
          report.add(.strayEntry, "\(path): \(ConsistencyCheck.hexadecimal(key))")
        }
        return true
      }
    }

    /// The entries that a document may have; none if it does not exist.
    private func entries(at path: ResourcePath) throws -> DocumentEntries {
      guard let name = DocumentName(database: name, path: path),
        let fields = try? view.document(name)?.fields()
      else { return .none }
      let group = indexSet.possible(in: path.segments.dropLast().last ?? "")
      return try DocumentEntries(of: fields, at: path, in: group, limits: nil)
    }
  }

  /// The index number in a composite index row's key.
  private static func number(_ key: Key) -> UInt32 {
    key.dropFirst().prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func hexadecimal(_ key: Key) -> String {
    let digits = Array("0123456789abcdef")
    return String(key.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}
