// Suggests indexes to the operator. For a query that scans many rows for few results, reports the element to
// add to `firestore.indexes.json`.
//
// Invariant: each suggestion is reported at most once while a database is open. The number of suggestions is
// bounded, since clients choose the queries and could fill the log. Suggestions contain field names, never
// values.

import FirestoreModel
import Locking
import OrderedStore

extension QueryRun {
  /// Scanned rows above which an index may be suggested.
  private static let minimumScannedRows = 1_000
  /// Scanned rows per result above which an index is suggested.
  private static let minimumRowsPerResult = 10

  /// Whether the query scanned many more rows than it found results.
  var isWasteful: Bool {
    rowsRead > Self.minimumScannedRows && rowsRead / Self.minimumRowsPerResult > resultsFound
  }
}

extension FirestoreDatabase {
  /// Maximum number of suggestions, and maximum bytes of one.
  private static let maximumReports = 1_000
  private static let maximumReportBytes = 8_192

  /// Suggests an index to the operator if a query scanned many rows for few results.
  func advise(on run: QueryRun) {
    guard run.isWasteful, !options.requiresIndexes,
      let missing = Planner(run.query, indexes.current, at: Version(microseconds: .max)).missingIndex,
      let element = missing.configuration, element.text.utf8.count <= Self.maximumReportBytes
    else { return }
    let key = element.text.hashValue
    let isNew = reportedAdvice.withLock { $0.count < Self.maximumReports && $0.insert(key).inserted }
    guard isNew else { return }
    options.report(
      "\(name): a query scanned \(run.rowsRead) rows for \(run.resultsFound) results; an index would make it faster: add to "
        + "\"\(element.list)\" in firestore.indexes.json \(element.text)")
  }
}

extension MissingIndex {
  /// The index as an element of a list in `firestore.indexes.json`. Nil if it is configured already, or is a
  /// vector index, which would not make the query faster. If its build failed, the operator has received the
  /// error already.
  var configuration: (list: String, text: String)? {
    switch self {
    case .composite(_, .building), .composite(_, .failed), .vector: return nil
    case .composite(let index, .unknown):
      var fields = index.parts.map { Self.field($0.field.description, $0.mode) }
      // `__name__` follows the direction of the last field unless it is listed.
      if index.namesDescend != (index.parts.last?.mode == .descending) {
        fields.append(Self.field("__name__", index.namesDescend ? .descending : .ascending))
      }
      return (
        "indexes",
        "{\"collectionGroup\":\(Self.quoted(index.collectionID)),\"queryScope\":\"\(index.scope.text)\",\"fields\":["
          + fields.joined(separator: ",") + "]}"
      )
    case .single(let index):
      guard let part = index.parts.first else { return nil }
      var modes = ["\"queryScope\":\"\(index.scope.text)\",\(Self.mode(part.mode))"]
      if index.scope == .collectionGroup {
        // An override replaces the field's default indexes, so these are listed too.
        modes =
          [CompositeIndex.Mode.ascending, .descending, .contains].map {
            "\"queryScope\":\"COLLECTION\",\(Self.mode($0))"
          } + modes
      }
      return (
        "fieldOverrides",
        "{\"collectionGroup\":\(Self.quoted(index.collectionID)),\"fieldPath\":\(Self.quoted(part.field.description)),"
          + "\"indexes\":[" + modes.map { "{\($0)}" }.joined(separator: ",") + "]}"
      )
    }
  }

  private static func field(_ path: String, _ mode: CompositeIndex.Mode) -> String {
    "{\"fieldPath\":\(quoted(path)),\(self.mode(mode))}"
  }

  private static func mode(_ mode: CompositeIndex.Mode) -> String {
    switch mode {
    case .ascending: "\"order\":\"ASCENDING\""
    case .descending: "\"order\":\"DESCENDING\""
    case .contains: "\"arrayConfig\":\"CONTAINS\""
    }
  }

  /// A JSON string without line breaks or other control characters.
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension DatabaseIndexConfiguration.Scope {
  fileprivate var text: String { self == .collection ? "COLLECTION" : "COLLECTION_GROUP" }
}
