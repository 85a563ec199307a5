// Finds the nearest of many vectors in one pass.
//
// Invariant: at most `limit` matches are held, each with its name, distance and a prefix of its order fields.
// Documents are read again for delivery, so a thousand large documents are never in memory together.

import FirestoreModel

/// Collects the nearest documents, in any order of arrival.
struct NearestMatches {
  /// A document that may be among the nearest.
  struct Match: Sendable {
    var name: DocumentName
    var distance: Double
    /// The sort value of the distance; NaN is last.
    fileprivate var rank: Double
    /// The encoded order fields, as far as an index entry distinguishes them.
    fileprivate var sortKey: ArraySlice<UInt8>
  }

  private let nearest: FindNearest
  private let norm: Double
  /// The order of documents at equal distance, without names.
  private let orders: ArraySlice<StructuredQuery.Order>
  private var matches: TopKElements<Match>

  /// - Parameter orders: the query's order.
  init(_ nearest: FindNearest, orders: [StructuredQuery.Order]) {
    self.nearest = nearest
    norm = NearestMatches.norm(nearest.vector)
    self.orders = orders.prefix { !$0.field.isDocumentID }
    let isDescending = orders.last?.direction == .descending
    matches = TopKElements(nearest.limit) { a, b in
      if NearestMatches.isNearer(a.rank, b.rank) { return true }
      if NearestMatches.isNearer(b.rank, a.rank) { return false }
      if a.sortKey != b.sortKey { return a.sortKey.lexicographicallyPrecedes(b.sortKey) }
      return DocumentName.compare(a.name, b.name) == (isDescending ? .descending : .ascending)
    }
  }

  /// Adds a document, unless it lacks a vector of the right dimension or is beyond the distance threshold.
  mutating func add(_ document: StoredDocument) throws(FirestoreError) {
    let fields = try document.fields()
    guard case .vector(let vector)? = fields.value(at: nearest.field),
      vector.count == nearest.vector.count
    else { return }
    let distance = distance(to: vector)
    let isProduct = nearest.measure == .dotProduct
    if let threshold = nearest.distanceThreshold,
      !(isProduct ? distance >= threshold : distance <= threshold)
    {
      return
    }
    _ = matches.add(
      Match(
        name: document.name, distance: distance, rank: isProduct ? -distance : distance,
        sortKey: sortKey(fields)))
  }

  /// The nearest documents, nearest first; documents at equal distance are in the query's order.
  mutating func takeSorted() -> [Match] { matches.takeSorted() }

  private func sortKey(_ fields: MapValue) -> ArraySlice<UInt8> {
    var bytes: [UInt8] = []
    for order in orders where bytes.count < IndexValue.truncationLength {
      let mode: CompositeIndex.Mode = order.direction == .descending ? .descending : .ascending
      bytes += NumberedIndex.encode(fields.value(at: order.field) ?? .null, mode)
    }
    return bytes.prefix(IndexValue.truncationLength)
  }

  private static func isNearer(_ a: Double, _ b: Double) -> Bool {
    if a.isNaN { return false }
    return b.isNaN || a < b
  }

  private func distance(to vector: [Double]) -> Double {
    switch nearest.measure {
    case .euclidean:
      var sum = 0.0
      for (a, b) in zip(vector, nearest.vector) { sum += (a - b) * (a - b) }
      return sum.squareRoot()
    case .dotProduct: return product(vector)
    case .cosine: return 1 - product(vector) / (NearestMatches.norm(vector) * norm)
    }
  }

  private func product(_ vector: [Double]) -> Double {
    var sum = 0.0
    for (a, b) in zip(vector, nearest.vector) { sum += a * b }
    return sum
  }

  private static func norm(_ vector: [Double]) -> Double {
    var sum = 0.0
    for number in vector { sum += number * number }
    return sum.squareRoot()
  }
}
