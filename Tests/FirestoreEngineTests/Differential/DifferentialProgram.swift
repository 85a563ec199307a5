// One program of the differential test, which compares the engine with a simple reference evaluator: documents, indexes,
// queries and later commits. A program is plain data, so it can be generated from a seed, run, reduced and printed.

import FirestoreModel
import OrderedStore

@testable import FirestoreEngine

/// Documents, indexes, queries and commits that a run applies to an engine.
struct DifferentialProgram {
  /// A query and the ways in which it runs: once, by pages, as aggregations and as a listener's target.
  struct Question: Equatable {
    var query: Query
    /// Whether the last results are read (limit to last): the client reverses the order and then the results.
    var isToLast = false
    /// Maximum documents of one page when the query is read by cursors; nil to skip that.
    var pageSize: Int?
    var aggregates: [AggregationQuery.Operator] = []

    /// True if Firestore's rules accept the query.
    var isValid: Bool { (try? NormalizedQuery(query)) != nil }

    /// The query in the form that the engine receives.
    var engineQuery: Query {
      guard isToLast else { return query }
      return Query(parent: query.parent, query.structured.reversed)
    }
  }

  /// The new fields of one document; nil deletes it.
  typealias Change = (path: ResourcePath, fields: MapValue?)

  /// The time at which the indexes are configured.
  enum IndexTiming: CaseIterable {
    /// Before the first document.
    case before
    /// After the documents; the index builder scans them.
    case after
    /// Like `after`, but the entries of replaced indexes are removed before the queries run.
    case afterCleanup
  }

  /// The documents of the first commit.
  var documents: [(path: ResourcePath, fields: MapValue)]
  var indexes = DatabaseIndexConfiguration()
  var indexTime = IndexTiming.before
  /// Maximum rows that a query reads before it pauses.
  var maximumScanRows = EngineLimits.maximumScanRows
  /// Later commits. Before every second of these commits the listeners move to a new stream and resume.
  var commits: [[Change]] = []
  var questions: [Question]

  var description: String {
    var lines = ["documents:"] + documents.map { "  \($0.path): \($0.fields)" }
    if indexes != DatabaseIndexConfiguration() {
      lines.append("indexes, \(indexTime):")
      lines += indexes.indexes.map { "  \($0)" } + indexes.overrides.map { "  \($0)" }
    }
    if maximumScanRows != EngineLimits.maximumScanRows {
      lines.append("pausing after \(maximumScanRows) rows")
    }
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
  /// Generates a program. The program omits generated queries that Firestore's rules for queries reject, so it may have
  /// fewer than `questions` questions.
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
      program.indexTime = model.pick(DifferentialProgram.IndexTiming.allCases)
    }
    program.maximumScanRows = model.pick([EngineLimits.maximumScanRows, EngineLimits.maximumScanRows, 1, 7])
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
