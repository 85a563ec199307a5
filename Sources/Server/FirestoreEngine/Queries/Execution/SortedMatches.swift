// Results that no index orders, held to be sorted.
//
// Invariant: at most a limit's worth of bytes is held, and with a wanted number no more than that many; where that is not
// enough, the query is refused with the index that would order it.

import FirestoreModel

/// Collects results and gives them sorted.
struct SortedMatches {
  /// A result, and what the order looks at: whole documents are much larger decoded than encoded.
  private struct Match: Sendable {
    var document: StoredDocument
    var fields: MapValue
    var bytes: Int

    var pair: (DocumentName, MapValue) { (document.name, fields) }
  }

  private let query: PreparedQuery
  private let fields: FieldMask
  private let limit: Int
  private var matches: TopKElements<Match>
  /// The bytes that are held.
  private(set) var bytes = 0

  /// - Parameters:
  ///   - wanted: how many of the first results are of use.
  ///   - limit: the most bytes that may be held.
  init(_ query: PreparedQuery, maximumCount: Int, limit: Int) {
    self.query = query
    fields = FieldMask(query.orders.map(\.field))
    self.limit = limit
    matches = TopKElements(maximumCount) { query.compare($0.pair, $1.pair) == .ascending }
  }

  var isEmpty: Bool { matches.isEmpty }

  /// Adds a result.
  /// - Throws: FAILED_PRECONDITION if more would have to be held than the limit allows.
  mutating func append(_ document: StoredDocument, _ contents: MapValue) throws {
    let size = document.encoded.count + SortedMatches.overhead
    let match = Match(document: document, fields: contents.projected(to: fields), bytes: size)
    bytes += size
    if let dropped = matches.add(match) { bytes -= dropped.bytes }
    if bytes > limit { throw SortedMatches.refusal(query, limit) }
  }

  /// Hands over the results in order, the wanted ones.
  mutating func take() -> ArraySlice<StoredDocument> {
    bytes = 0
    return matches.take().map(\.document)[...]
  }

  /// About what a result takes beside its encoding.
  private static let overhead = 256

  private static func refusal(_ query: PreparedQuery, _ limit: Int) -> FirestoreError {
    .failedPrecondition(
      "The query requires an index. Without one, at most \(limit >> 20) MiB of results can be sorted. It needs an "
        + "index of \(query.indexDescription).")
  }
}

extension PreparedQuery {
  /// The index that would give the query's results in order, in words: `collection c on (a ASC, b DESC, __name__ DESC)`.
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
    let position =
      switch scope {
      case .collection(let path): "collection \(path.id ?? "")"
      case .group(let id): "collection group \(id)"
      case .everywhere: "all collections"
      }
    return "\(position) on (\(parts.joined(separator: ", ")))"
  }
}
