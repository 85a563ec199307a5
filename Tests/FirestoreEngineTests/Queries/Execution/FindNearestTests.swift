// Tests nearest-neighbour queries, compared with a sort of all distances, and combined with filters, projections and
// limits.

import Access
import FirestoreModel
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Nearest-neighbour queries", .timeLimit(.minutes(10))) struct FindNearestTests {
  private static let field = FieldPath(field: "v")

  private static func nearest(
    _ vector: [Double], _ measure: FindNearest.Measure, limit: Int = 10, at result: String? = "d",
    threshold: Double? = nil, filter: Filter? = nil, select: FieldMask? = nil
  ) -> StructuredQuery {
    StructuredQuery(
      from: [.init("c")], filter: filter, select: select,
      findNearest: FindNearest(
        field: field, vector: vector, measure: measure, limit: limit,
        distanceResultField: result.map { FieldPath(field: $0) }, distanceThreshold: threshold))
  }

  private static func distances(_ documents: [StoredDocument]) throws -> [(String, Double)] {
    try documents.map { document in
      guard case .double(let distance)? = try document.fields()["d"] else { return (document.name.id, .nan) }
      return (document.name.id, distance)
    }
  }

  /// Documents with known vectors, and documents that the search must skip.
  private static func sampleFixture() async throws -> EngineFixture {
    let fixture = try EngineFixture()
    let vectors: [(String, Value)] = [
      ("a", .vector([1, 0])), ("b", .vector([3, 4])), ("c", .vector([0, 2])), ("zero", .vector([0, 0])),
      ("long", .vector([1, 0, 0])), ("list", .array([.double(1), .double(0)])), ("text", "v"),
    ]
    for (index, (id, value)) in vectors.enumerated() {
      try await fixture.set(
        ResourcePath(["c", id]), ["v": value, "even": .boolean(index.isMultiple(of: 2))])
    }
    try await fixture.set(ResourcePath(["c", "none"]), ["even": true])
    return fixture
  }

  @Test(
    "each distance measure sorts correctly; vectors of other dimensions and non-vectors are skipped; NaN is last"
  )
  func measures() async throws {
    let fixture = try await Self.sampleFixture()
    let euclidean = try Self.distances(await fixture.query(Self.nearest([1, 0], .euclidean)))
    #expect(euclidean.map(\.0) == ["a", "zero", "c", "b"])
    #expect(euclidean.map(\.1) == [0, 1, 5.0.squareRoot(), 20.0.squareRoot()])
    let cosine = try Self.distances(await fixture.query(Self.nearest([1, 0], .cosine)))
    #expect(cosine.map(\.0) == ["a", "b", "c", "zero"])
    #expect(cosine[0].1 == 0 && abs(cosine[1].1 - 0.4) < 1e-12 && cosine[2].1 == 1 && cosine[3].1.isNaN)
    let product = try Self.distances(await fixture.query(Self.nearest([1, 1], .dotProduct)))
    #expect(product.map(\.0) == ["b", "c", "a", "zero"])
    #expect(product.map(\.1) == [7, 2, 1, 0])
  }

  @Test("a threshold is an upper bound for distances and a lower bound for the dot product")
  func thresholds() async throws {
    let fixture = try await Self.sampleFixture()
    func ids(_ measure: FindNearest.Measure, _ threshold: Double) async throws -> [String] {
      try await fixture.query(Self.nearest([1, 1], measure, threshold: threshold)).map(\.name.id)
    }
    #expect(try await ids(.euclidean, 1) == ["a"])
    #expect(try await ids(.dotProduct, 2) == ["b", "c"])
    #expect(try await ids(.cosine, 0.1) == ["b"])
    #expect(try await ids(.cosine, .nan) == [])
  }

  @Test("a search applies filters first, and projection and limit last; the distance may replace a field")
  func stages() async throws {
    let fixture = try await Self.sampleFixture()
    let even = Filter.field(FieldFilter(FieldPath(field: "even"), .equal, true))
    let filtered = try await fixture.query(Self.nearest([1, 0], .euclidean, filter: even))
    #expect(filtered.map(\.name.id) == ["a", "c"])
    let few = try await fixture.query(
      Self.nearest([1, 0], .euclidean, limit: 2, select: [FieldPath(field: "d")]))
    #expect(try few.map { try $0.fields() } == [["d": .double(0)], ["d": .double(1)]])
    let plain = try await fixture.query(Self.nearest([1, 0], .euclidean, limit: 1, at: nil))
    #expect(try plain.first?.fields() == ["v": .vector([1, 0]), "even": true])
    let replaced = try await fixture.query(Self.nearest([1, 0], .euclidean, limit: 1, at: "v"))
    #expect(try replaced.first?.fields()["v"] == .double(0))
    var limited = Self.nearest([1, 0], .euclidean)
    limited.limit = 2
    #expect(try await fixture.query(limited).map(\.name.id) == ["a", "b"])
  }

  @Test(
    "a search with a limit equals a sort of all distances; documents at equal distance are in query order")
  func matchesSortedDistances() async throws {
    var source = RandomValues(seed: 91)
    let fixture = try EngineFixture()
    var vectors: [(String, [Double])] = []
    var writes: [Write] = []
    for index in 0..<700 {
      let vector = (0..<3).map { _ in Double(source.below(9)) - 4 }
      let id = "d\(1000 + index)"
      vectors.append((id, vector))
      writes.append(
        Write(.update(try fixture.name(ResourcePath(["c", id])), fields: ["v": .vector(vector)])))
    }
    try await fixture.commit(writes)
    for _ in 0..<30 {
      let target = (0..<3).map { _ in Double(source.below(9)) - 4 }
      let limit = 1 + source.below(400)
      let expected = vectors.enumerated().map { index, entry in
        (index, entry.0, zip(entry.1, target).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) })
      }.sorted { ($0.2, $0.0) < ($1.2, $1.0) }.prefix(limit).map(\.1)
      let found = try await fixture.query(Self.nearest(target, .euclidean, limit: limit))
      #expect(found.map(\.name.id) == expected)
    }
  }

  @Test(
    "a search in a transaction or at a past time reads one snapshot; a count of a search counts its results")
  func snapshots() async throws {
    let fixture = try await Self.sampleFixture()
    let time = try #require(
      try await fixture.set(ResourcePath(["c", "new"]), ["v": .vector([1, 0])]).commitTime)
    try await fixture.delete(ResourcePath(["c", "a"]))
    let query = Self.nearest([1, 0], .euclidean, limit: 3)
    #expect(try await fixture.query(query, .readTime(time)).map(\.name.id) == ["a", "new", "zero"])
    let token = try await fixture.begin()
    #expect(try await fixture.query(query, .transaction(token)).map(\.name.id) == ["new", "zero", "c"])
    try await fixture.commit([], transaction: token)
    let count = try await fixture.engine.runAggregationQuery(
      AggregationQuery(query, [.init("n", .count(upTo: 2))]), under: fixture.root, as: .administrator)
    #expect(count.fields == ["n": 2])
    let all = try await fixture.engine.runAggregationQuery(
      AggregationQuery(query, [.init("n", .count(upTo: nil))]), under: fixture.root, as: .administrator)
    #expect(all.fields == ["n": 3])
  }

  @Test("listening to a search, a reserved result field and a limit above 1,000 are rejected")
  func rejections() async throws {
    let fixture = try await Self.sampleFixture()
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 1, fixture.selection(Self.nearest([1, 0], .cosine))))
    try await eventually("the target is rejected") { client.view.removed[1]??.code == .invalidArgument }
    for bad in [Self.nearest([1], .cosine, at: "__d__"), Self.nearest([1], .cosine, limit: 1001)] {
      #expect(await failure { try await fixture.query(bad) }?.code == .invalidArgument)
    }
  }
}
