// Generates a request program: a random sequence of writes and requests for the tests of denied data. Requests are plain
// data, so that several engines can run the same requests. Outcomes are text without times and tokens.

import Access
import FirestoreModel
import Locking
import OrderedStore

@testable import FirestoreEngine

/// Generates the writes and requests of one program.
struct RequestProgram {
  private var model: RandomModel
  private var deniedModels: [RandomModel]

  init(seed: UInt64) {
    let database = DatabaseName(project: "demo")
    model = RandomModel(seed: seed &* 31 &+ 7, database: database)
    deniedModels = (0..<2).map { RandomModel(seed: seed &* 1_000 &+ UInt64($0), database: database) }
  }

  private static func isDenied(_ write: Write) -> Bool { write.document.path.segments.first == "d" }

  /// Writes of permitted documents, the same for all engines.
  mutating func permittedWrites() -> [Write] {
    var documents: [ResourcePath: MapValue] = [:]
    return ((try? model.writes(atMost: 4, on: &documents)) ?? []).filter { !Self.isDenied($0) }
  }

  /// Writes of denied documents, which differ between engines.
  mutating func deniedWrites(inWorld world: Int) -> [Write] {
    var writes: [Write] = []
    for id in ["d1", "d2", "d3", "z"] where deniedModels[world].chance(40) {
      guard let name = DocumentName(database: model.database, path: ResourcePath(["d", id])) else { continue }
      writes.append(
        Write(
          deniedModels[world].chance(30) ? .delete(name) : .update(name, fields: deniedModels[world].fields())
        ))
    }
    return writes
  }

  /// Returns a random request. The number of the step in the program determines the kind of the request.
  mutating func request(_ step: Int) -> Request {
    let root = ParentName(rootOf: model.database)
    let path = model.chance(40) ? ResourcePath(["d", model.pick(["d1", "d2", "z"])]) : model.path()
    let name = DocumentName(database: model.database, path: path)
    let other = DocumentName(database: model.database, path: model.path())
    let names = [name, other].compactMap(\.self)
    let consistency = model.pick([Consistency.latest, .newReadWrite, .newReadOnly])
    switch step % 10 {
    case 0: return .get(names.first, consistency)
    case 1: return .batchGet(names, consistency)
    case 2, 3: return .query(model.query(root: root), consistency)
    case 4: return .aggregate(model.query(root: root), consistency)
    case 5:
      return .list(
        model.pick(["c", "d", ""]), order: model.pick(["", "a desc"]), size: model.pick([0, 1, 2]))
    case 6: return .listen(model.query(root: root))
    case 7: return .administrative(Int.random(in: 0..<5, using: &model.random))
    default:
      let preconditions: [Precondition?] = [
        nil, .exists(true), .exists(false), .updateTime(Timestamp(microseconds: 77)),
      ]
      let writes = names.map { name -> Write in
        let precondition = model.pick(preconditions)
        switch Int.random(in: 0..<4, using: &model.random) {
        case 0: return Write(.delete(name), precondition: precondition)
        case 1: return Write(.verify(name), precondition: precondition ?? .exists(true))
        case 2:
          return Write(
            .update(name, fields: model.fields()), mask: [model.field()], precondition: precondition)
        default: return Write(.update(name, fields: model.fields()), precondition: precondition)
        }
      }
      return .commit(writes, inTransaction: model.chance(40))
    }
  }

  /// The state that a request reads.
  enum Consistency { case latest, newReadWrite, newReadOnly }

  /// A request of a user.
  enum Request {
    case get(DocumentName?, Consistency)
    case batchGet([DocumentName], Consistency)
    case query(Query, Consistency)
    case aggregate(Query, Consistency)
    case list(String, order: String, size: Int)
    case listen(Query)
    case administrative(Int)
    case commit([Write], inTransaction: Bool)
  }
}

extension RequestProgram.Request {
  /// The target of a listen; nil for other requests.
  func target(_ step: Int) -> WatchTarget? {
    guard case .listen(let query) = self else { return nil }
    return WatchTarget(id: Int32(2 * step + 2), .query(query))
  }

  /// The outcome as text without times and tokens.
  func outcome(on fixture: EngineFixture) async throws -> String {
    let engine = fixture.engine
    let caller = Principal.user("u")
    let database = fixture.database
    let token = Guarded<[UInt8]?>(nil)
    let text = Collected<String>()
    func options(_ consistency: RequestProgram.Consistency) async throws -> ReadConsistency {
      guard consistency != .latest else { return .latest }
      let begun = try await engine.beginTransaction(
        in: database, consistency == .newReadOnly ? .readOnly() : .readWrite(), as: caller)
      token.withLock { $0 = begun }
      return .transaction(begun)
    }
    do {
      switch self {
      case .get(let name, let consistency):
        guard let name else { break }
        let read = try await engine.getDocument(
          name, consistency: try await options(consistency), as: caller)
        text.append(try Self.describe(read.document))
      case .batchGet(let names, let consistency):
        try await engine.batchGetDocuments(
          in: database, names, consistency: try await options(consistency), as: caller
        ) { page in
          for item in page.items {
            switch item {
            case .found(let document): text.append(try Self.describe(document))
            case .missing(let name): text.append("missing \(name)")
            }
          }
        }
      case .query(let query, let consistency):
        try await engine.runQuery(query, consistency: try await options(consistency), as: caller) { page in
          text.append("skipped \(page.skippedResults)")
          for document in page.documents { text.append(try Self.describe(document)) }
        }
      case .aggregate(let query, let consistency):
        let result = try await engine.runAggregationQuery(
          AggregationQuery(query.structured, [.init("n", .count(upTo: nil))]), under: query.parent,
          consistency: try await options(consistency), as: caller)
        text.append("\(result.fields)")
      case .list(let collection, let order, let size):
        var request = ListDocumentsRequest(
          parent: fixture.root, collectionID: collection, pageSize: size, orderBy: order)
        repeat {
          let page = try await engine.listDocuments(request, as: caller)
          for case .found(let document) in page.documents { text.append(try Self.describe(document)) }
          request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
      case .listen: break
      case .administrative(let kind): try await Self.administrative(kind, fixture, caller)
      case .commit(let writes, let inTransaction):
        let transaction =
          inTransaction
          ? try await engine.beginTransaction(in: database, .readWrite(), as: caller) : nil
        let response = try await engine.commit(in: database, writes, transaction: transaction, as: caller)
        text.append("\(response.writeResults.map { $0.updateTime != nil })")
      }
    } catch let error as FirestoreError {
      // The times of preconditions' errors differ between engines.
      text.append("\(error.code.name) \(error.message.filter { !$0.isNumber })")
    }
    if let begun = token.withLock({ $0 }) {
      try await engine.rollback(in: database, transaction: begun, as: caller)
    }
    return text.all.joined(separator: "\n")
  }

  private static func administrative(
    _ kind: Int, _ fixture: EngineFixture, _ caller: Principal
  ) async throws {
    let engine = fixture.engine
    let group = Query(parent: fixture.root, StructuredQuery(from: [.init("d", allDescendants: true)]))
    switch kind {
    case 0: _ = try await engine.listCollectionIDs(ListCollectionIDsRequest(parent: fixture.root), as: caller)
    case 1: _ = try await engine.partitionQuery(PartitionQueryRequest(group, count: 2), as: caller)
    case 2: try await engine.runQuery(group, explain: .plan, as: caller) { _ in }
    case 3:
      _ = try await engine.batchWrite(
        in: fixture.database, [Write(.delete(try fixture.name("d/d1")))], as: caller)
    default:
      _ = try await engine.listDocuments(
        ListDocumentsRequest(parent: fixture.root, collectionID: "d", showMissing: true), as: caller)
    }
  }

  private static func describe(_ document: StoredDocument) throws -> String {
    "\(document.name.path): \(try document.fields())"
  }
}
