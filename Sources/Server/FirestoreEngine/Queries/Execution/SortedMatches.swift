// Sorts results of a query in memory, if no index has the query's order.
//
// Invariant: at most `limit` bytes and `maximumCount` results are held. If the `limit` is exceeded, the query
// fails with an error that names the missing index.

import FirestoreModel

/// Collects results and returns them sorted.
struct SortedMatches {
  /// A result in encoded form and its decoded order fields. A completely decoded document would need much
  /// more memory.
  private struct Match: Sendable {
    var document: StoredDocument
    var fields: MapValue
    var bytes: Int

    var pair: (DocumentName, MapValue) { (document.name, fields) }
  }

  private let query: PreparedQuery
  private let orderFields: FieldMask
  private let limit: Int
  private var matches: TopKElements<Match>
  /// The bytes that are held.
  private(set) var bytes = 0

  /// - Parameters:
  ///   - maximumCount: the number of results needed, counted from the first in the order.
  ///   - limit: maximum bytes to hold.
  init(_ query: PreparedQuery, maximumCount: Int, limit: Int) {
    self.query = query
    orderFields = FieldMask(query.orders.map(\.field))
    self.limit = limit
    matches = TopKElements(maximumCount) { query.compare($0.pair, $1.pair) == .ascending }
  }

  var isEmpty: Bool { matches.isEmpty }

  /// Adds a result.
  /// - Throws: FAILED_PRECONDITION if the held results exceed the limit.
  mutating func append(_ document: StoredDocument, _ contents: MapValue) throws {
    let size = document.encoded.count + SortedMatches.overhead
    let match = Match(document: document, fields: contents.projected(to: orderFields), bytes: size)
    bytes += size
    if let dropped = matches.add(match) { bytes -= dropped.bytes }
    if bytes > limit { throw SortedMatches.indexError(query, limit) }
  }

  /// Returns and removes the results, sorted, at most `maximumCount`.
  mutating func takeSorted() -> ArraySlice<StoredDocument> {
    bytes = 0
    return matches.takeSorted().map(\.document)[...]
  }

  /// The approximate overhead of a result, in bytes.
  private static let overhead = 256

  private static func indexError(_ query: PreparedQuery, _ limit: Int) -> FirestoreError {
    .failedPrecondition(
      "The query requires an index. Without one, at most \(limit >> 20) MiB of results can be sorted. It needs an "
        + "index of \(query.indexDescription).")
  }
}

extension PreparedQuery {
  /// The index that would order the query's results, as text: `collection c on (a ASC, b DESC, __name__
  /// DESC)`.
  var indexDescription: String {
    var parts: [String] = []
    var seen = Set(orders.map(\.field))
    for term in normalized.disjunctions.joined() where seen.insert(term.field).inserted {
      switch term {
      case .field(let filter) where filter.op == .arrayContains: parts.append("\(filter.field) CONTAINS")
      default: parts.append("\(term.field) ASC")
      }
    }
    for order in orders { parts.append("\(order.field) \(order.direction == .ascending ? "ASC" : "DESC")") }
    let scopeText =
      switch scope {
      case .collection(let path): "collection \(path.id ?? "")"
      case .group(let id): "collection group \(id)"
      case .everywhere: "all collections"
      }
    return "\(scopeText) on (\(parts.joined(separator: ", ")))"
  }
}
