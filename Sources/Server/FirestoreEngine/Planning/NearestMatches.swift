// The nearest of many vectors, found by looking at each once.
//
// Invariant: names and distances alone are held, of at most twice the limit and a few: documents are read again when
// they are delivered, so that a thousand large ones never stand in memory together.

import FirestoreModel

/// Collects the nearest documents.
struct NearestMatches {
  /// A document that may be among the nearest.
  struct Match {
    var name: DocumentName
    var distance: Double
    /// What matches are sorted by; NaN is farthest.
    fileprivate var farness: Double
    fileprivate var position: Int
  }

  private let nearest: FindNearest
  private let norm: Double
  private var matches: [Match] = []
  private var seen = 0
  /// The farness of the last of the nearest so far, once there are enough.
  private var worst: Double?

  init(_ nearest: FindNearest) {
    self.nearest = nearest
    norm = NearestMatches.norm(nearest.vector)
  }

  /// Looks at a document; one without a vector of the right dimension, or too far away, is passed over.
  mutating func add(_ document: StoredDocument) throws(FirestoreError) {
    guard case .vector(let vector)? = try document.fields().value(at: nearest.field),
      vector.count == nearest.vector.count
    else { return }
    let distance = distance(to: vector)
    let isProduct = nearest.measure == .dotProduct
    if let threshold = nearest.distanceThreshold,
      !(isProduct ? distance >= threshold : distance <= threshold)
    {
      return
    }
    seen += 1
    let farness = isProduct ? -distance : distance
    if let worst, !NearestMatches.isNearer(farness, worst) { return }
    matches.append(Match(name: document.name, distance: distance, farness: farness, position: seen))
    if matches.count >= 2 * nearest.limit + 64 { cut() }
  }

  /// The nearest, nearest first; of equally near ones those that came first.
  mutating func take() -> [Match] {
    cut()
    return matches
  }

  private mutating func cut() {
    matches.sort { a, b in
      if NearestMatches.isNearer(a.farness, b.farness) { return true }
      if NearestMatches.isNearer(b.farness, a.farness) { return false }
      return a.position < b.position
    }
    guard matches.count >= nearest.limit else { return }
    matches.removeLast(matches.count - nearest.limit)
    worst = matches.last?.farness
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
