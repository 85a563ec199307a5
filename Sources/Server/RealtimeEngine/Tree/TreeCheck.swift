// Reads a whole database of the Realtime Database and says what of it cannot be read or does not fit: every row of the
// tree has a path and a value, and no location has both a value and children.
//
// Invariant: memory is bounded whatever the database holds; rows are gone over in order, and only the last path is kept.

public import OrderedStore
import RealtimeModel

/// What a check of one database found.
public struct TreeReport: Sendable, Equatable {
  /// The namespace.
  public var namespace: String
  /// Locations with a value.
  public var leaves = 0
  /// How many rows are wrong.
  public var problemCount = 0
  /// The first of them, at most a hundred: the location, or the row's key in hexadecimal digits, and what is wrong.
  public var problems: [String] = []

  /// Whether nothing is wrong.
  public var isConsistent: Bool { problemCount == 0 }

  fileprivate mutating func add(_ problem: String) {
    problemCount += 1
    if problems.count < 100 { problems.append(problem) }
  }
}

/// Checks the databases of a store.
public enum TreeCheck {
  /// Checks every database of the Realtime Database, which nobody may write to meanwhile.
  /// - Throws: ``StoreError`` if a row's bytes cannot be had from the store at all.
  public static func run(_ store: any OrderedStore) async throws -> [TreeReport] {
    var reports: [TreeReport] = []
    for name in try await store.databaseNames() where name.hasPrefix(RealtimeEngine.cataloguePrefix) {
      let rows = try await store.database(named: name, history: .activeReadersOnly)
      let namespace = String(name.dropFirst(RealtimeEngine.cataloguePrefix.count))
      reports.append(try await rows.read(at: nil) { try check(namespace, $0) })
    }
    return reports
  }

  private static func check(_ namespace: String, _ view: any ReadView) throws -> TreeReport {
    var report = TreeReport(namespace: namespace)
    // Every row, whatever it is for: the store verifies its bytes as it reads them.
    try view.scan(KeyRange(start: [], end: nil), reverse: false) { _, _, _ in true }
    let tree = GenerationView(base: view, generations: try GenerationRows.load(view))
    var leaf: [UInt8] = []
    try tree.scan(KeyRange(prefix: [RowKeys.tree]), reverse: false) { key, value, _ in
      let place = location(key)
      let node = try? NodeDecoder.decode(Array(value))
      let isPriority = key.last == RowKeys.priority
      switch node?.content {
      case .leaf where place == nil: report.add("\(hexadecimal(key)): the row's key is no path")
      case .leaf: break
      default: report.add("\(place ?? hexadecimal(key)): the row's value cannot be read")
      }
      if !leaf.isEmpty, key.starts(with: leaf) {
        report.add("\(place ?? hexadecimal(key)): lies below a location that has a value itself")
      } else if !isPriority {
        leaf = Array(key)
      }
      if !isPriority { report.leaves += 1 }
      return true
    }
    return report
  }

  /// The path that a row's key spells; nil if it spells none.
  private static func location(_ key: UnsafeRawBufferPointer) -> String? {
    let path = key.dropFirst()
    guard path.isEmpty || path.last == RowKeys.terminator || path.last == RowKeys.priority else { return nil }
    let text = String(decoding: path, as: UTF8.self)
    guard text.utf8.elementsEqual(path) else { return nil }
    return "/" + text.split { $0 == "\0" || $0 == "\u{1}" }.joined(separator: "/")
  }

  private static func hexadecimal(_ key: UnsafeRawBufferPointer) -> String {
    key.map { byte in String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }.joined()
  }
}
