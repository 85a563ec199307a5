// Checks the rows of a Realtime Database: every row of the tree has a path and a value, and no location has
// both a value and children.
//
// Invariant: memory is bounded for any database. Rows are scanned in order, and only the last path is kept.

public import OrderedStore
import RealtimeModel

/// The result of checking one database.
public struct TreeReport: Sendable, Equatable {
  /// The namespace.
  public var namespace: String
  /// The number of locations with a value.
  public var leaves = 0
  /// The number of invalid rows.
  public var problemCount = 0
  /// The first 100 problems: each has the location, or the row key in hexadecimal, and the reason.
  public var problems: [String] = []

  /// Whether all rows are valid.
  public var isConsistent: Bool { problemCount == 0 }

  fileprivate mutating func add(_ problem: String) {
    problemCount += 1
    if problems.count < 100 { problems.append(problem) }
  }
}

/// Checks the databases of a store.
public enum TreeCheck {
  /// Checks every Realtime Database of a store. Nothing may write to the store during the check.
  ///
  /// - Throws: ``StoreError`` if the store cannot read a row.
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
    // Scanning all rows makes the store verify their checksums.
    try view.scan(KeyRange(start: [], end: nil), reverse: false) { _, _, _ in true }
    let tree = GenerationView(base: view, generations: try GenerationRows.load(view))
    var leaf: [UInt8] = []
    try tree.scan(KeyRange(prefix: [RowKeys.tree]), reverse: false) { key, value, _ in
      let path = location(key)
      let node = try? NodeDecoder.decode(Array(value))
      let isPriority = key.last == RowKeys.priority
      switch node?.content {
      case .leaf where path == nil: report.add("\(hexadecimal(key)): the row's key is no path")
      case .leaf: break
      default: report.add("\(path ?? hexadecimal(key)): the row's value cannot be read")
      }
      if !leaf.isEmpty, key.starts(with: leaf) {
        report.add("\(path ?? hexadecimal(key)): lies below a location that has a value itself")
      } else if !isPriority {
        leaf = Array(key)
      }
      if !isPriority { report.leaves += 1 }
      return true
    }
    return report
  }

  /// The path of a row key; nil if the key is not a path.
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
