// One program of the differential test: documents, indexes, queries and later changes, all of them data, so that a
// program can be made from a seed, run, made smaller and printed.

import FirestoreModel
import OrderedStore

@testable import FirestoreEngine

/// What is done to an engine, and asked of it.
struct DifferentialProgram {
  /// A query, and how it is asked beside at once and by a listener.
  struct Question: Equatable {
    var query: Query
    /// Asked for the last results, as clients do: from the other end, and turned round.
    var isToLast = false
    /// Documents of one page when it is read by cursors; nil not to.
    var pageSize: Int?
    var aggregates: [AggregationQuery.Operator] = []

    /// Whether the product takes it.
    var isValid: Bool { (try? NormalizedQuery(query)) != nil }

    /// The query as the engine is asked.
    var asked: Query {
      guard isToLast else { return query }
      return Query(parent: query.parent, query.structured.reversed)
    }
  }

  /// One document as a commit leaves it; nil for none.
  typealias Change = (path: ResourcePath, fields: MapValue?)

  /// When the indexes come.
  enum IndexTime: CaseIterable {
    /// Before the first document.
    case before
    /// After the documents, built over them.
    case after
    /// As `after`, with what was there before cleared.
    case settled
  }

  /// The documents of the first commit.
  var documents: [(path: ResourcePath, fields: MapValue)]
  var indexes = IndexConfiguration()
  var indexTime = IndexTime.before
  /// Rows after which a query pauses.
  var scanRows = EngineLimits.scanRows
  /// Later commits. Every second one meets the listeners on a new stream, which resumes.
  var commits: [[Change]] = []
  var questions: [Question]

  var description: String {
    var lines = ["documents:"] + documents.map { "  \($0.path): \($0.fields)" }
    if indexes != IndexConfiguration() {
      lines.append("indexes, \(indexTime):")
      lines += indexes.indexes.map { "  \($0)" } + indexes.overrides.map { "  \($0)" }
    }
    if scanRows != EngineLimits.scanRows { lines.append("pausing after \(scanRows) rows") }
    for question in questions {
      lines.append("query under '\(question.query.parent.path)': \(question.query.structured)")
      if question.isToLast { lines.append("  to last") }
      if let size = question.pageSize { lines.append("  by pages of \(size)") }
      if !question.aggregates.isEmpty { lines.append("  aggregates: \(question.aggregates)") }
    }
    for commit in commits {
      lines.append("then:")
      lines += commit.map { "  \($0.path): \($0.fields.map { "\($0)" } ?? "deleted")" }
    }
    return lines.joined(separator: "\n")
  }
}

extension RandomModel {
  /// A program of at most so many questions; fewer where the product refuses what came out.
  static func program(seed: UInt64, questions: Int) -> DifferentialProgram {
    var model = RandomModel(seed: seed &* 7_919, database: DatabaseName(project: "demo"))
    if model.chance(80) { model.schema = RandomSchema.random(&model.random) }
    var documents: [ResourcePath: MapValue] = [:]
    for _ in 0..<Int.random(in: 0...25, using: &model.random) { documents[model.path()] = model.fields() }
    let root = ParentName(rootOf: model.database)
    var program = DifferentialProgram(
      documents: documents.map { (path: $0.key, fields: $0.value) }.sorted { $0.path < $1.path },
      questions: [])
    for _ in 0..<questions {
      let question = model.question(root: root)
      if question.isValid { program.questions.append(question) }
    }
    if model.chance(60) {
      program.indexes = model.indexes()
      for question in program.questions where model.chance(40) {
        try? program.indexes.add(for: question.query)
      }
      program.indexTime = model.pick(DifferentialProgram.IndexTime.allCases)
    }
    program.scanRows = model.pick([EngineLimits.scanRows, EngineLimits.scanRows, 1, 7])
    for _ in 0..<model.pick([0, 1, 2, 3]) {
      program.commits.append(
        (0..<Int.random(in: 1...5, using: &model.random)).map { _ in
          (path: model.path(), fields: model.chance(30) ? nil : model.fields())
        })
    }
    return program
  }

  private mutating func question(root: ParentName) -> DifferentialProgram.Question {
    var question = DifferentialProgram.Question(query: query(root: root))
    let structured = question.query.structured
    if chance(25), !structured.orderBy.isEmpty, structured.limit != nil {
      question.isToLast = true
      question.query.structured.offset = 0
    }
    if chance(25) { question.pageSize = Int.random(in: 1...4, using: &random) }
    if chance(40) {
      let field = field()
      question.aggregates = pick([
        [.count(upTo: nil)], [.count(upTo: 3)], [.count(upTo: nil), .sum(field)], [.average(field)],
        [.sum(field), .average(self.field()), .count(upTo: 2)],
      ])
    }
    return question
  }
}
