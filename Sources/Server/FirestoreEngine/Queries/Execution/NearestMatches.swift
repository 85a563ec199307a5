// Collects the documents whose vectors are nearest to a query's vector, in one pass over all candidates.
//
// Invariant: at most `limit` matches are held, each with its name, distance and a prefix of its order fields.
// The caller reads the documents again for delivery, page by page. So even a thousand large results are never
// in memory at the same time.

import FirestoreModel

/// Collects the nearest documents. Candidates may be added in any order.
struct NearestMatches {
  /// A document that may be among the nearest.
  struct Match: Sendable {
    var name: DocumentName
    var distance: Double
    /// The sort key of the distance: a smaller rank is nearer, and NaN sorts last.
    fileprivate var rank: Double
    /// The first bytes of the encoded order fields, up to the maximum length of an indexed value. It orders documents at
    /// equal distance.
    fileprivate var sortKey: ArraySlice<UInt8>
  }

  private let nearest: FindNearest
  private let norm: Double
  /// The query's order, without the document name. It orders documents at equal distance.
  private let orders: ArraySlice<StructuredQuery.Order>
  private var matches: TopKElements<Match>

  /// - Parameter orders: the query's order, including the document name.
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
