// Generates programs of the differential test (which compares the engine with a reference evaluator) over values that
// index entries truncate. One collection holds most documents. Many of their index entries are equal, so that the
// boundaries of ranges, cursors and limits are between equal entries.

import FirestoreModel
import OrderedStore
import RandomModels

@testable import FirestoreEngine

extension RandomModel {
  /// Generates a program over long text, and arrays and maps that hold it.
  static func longValueProgram(seed: UInt64, questions: Int) -> DifferentialProgram {
    var model = RandomModel(seed: seed &* 6_700_417, database: DatabaseName(project: "demo"))
    model.schema = RandomSchema.long(seed: seed, &model.random)
    let root = ParentName(rootOf: model.database)
    var program = DifferentialProgram(
      documents: (1...Int.random(in: 6...20, using: &model.random)).map {
        (path: ResourcePath(["c", "d\($0)"]), fields: model.longFields())
      }, questions: [])
    for _ in 0..<questions {
      let question = model.longValueQuestion(root: root)
      if question.isValid { program.questions.append(question) }
    }
    if model.chance(70) {
      for question in program.questions where model.chance(60) {
        try? program.indexes.add(for: question.query)
      }
      program.indexTime = model.pick(DifferentialProgram.IndexTiming.allCases)
    }
    program.maximumScanRows = model.pick([EngineLimits.maximumScanRows, EngineLimits.maximumScanRows, 1, 7])
    for _ in 0..<model.pick([0, 1, 2]) {
      program.commits.append(
        (1...Int.random(in: 1...4, using: &model.random)).map { _ in
          let id = "d\(Int.random(in: 1...22, using: &model.random))"
          return (path: ResourcePath(["c", id]), fields: model.chance(25) ? nil : model.longFields())
        })
    }
    return program
  }

  private mutating func longFields() -> MapValue {
    var fields = MapValue()
    for field in schema.single where chance(90) { fields[field] = scalar() }
    for field in schema.lists where chance(90) {
      fields[field] = .array((0..<2).map { _ in scalar() }.filter { $0.kind != .array })
    }
    return fields
  }

  private mutating func longValueQuestion(root: ParentName) -> DifferentialProgram.Question {
    let directions: [StructuredQuery.Direction] = [.ascending, .descending]
    var query = StructuredQuery(from: [.init("c", allDescendants: chance(20))])
    if chance(80) { query.filter = longFilter() }
    for field in schema.single.shuffled(using: &random).prefix(pick([0, 1, 1, 2])) {
      query.orderBy.append(.init(FieldPath(field: field), pick(directions)))
    }
    if chance(40) { query.limit = Int.random(in: 1...6, using: &random) }
    if chance(20) { query.offset = Int.random(in: 1...3, using: &random) }
    for isStart in [true, false] where chance(30) {
      let orders = query.normalizedOrder
      let values = orders.prefix(Int.random(in: 1...orders.count, using: &random)).map { order -> Value in
        guard order.field.isDocumentID else { return scalar() }
        return DocumentName(database: database, path: "c/d5").map(Value.reference) ?? .null
      }
      let cursor = Cursor(values, before: chance(50))
      if isStart { query.startAt = cursor } else { query.endAt = cursor }
    }
    var question = DifferentialProgram.Question(query: Query(parent: root, query))
    if chance(20), !query.orderBy.isEmpty, query.limit != nil {
      question.isToLast = true
      question.query.structured.offset = 0
    }
    if chance(40) { question.pageSize = Int.random(in: 1...4, using: &random) }
    if chance(30) { question.aggregates = [.count(upTo: nil), .sum(FieldPath(field: schema.single[0]))] }
    return question
  }

  private mutating func longFilter() -> Filter {
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1: return range()
    case 2: return .composite(.and, [equality(), range()])
    case 3: return .composite(.or, [equality(), equality()])
    case 4: return .composite(.or, [range(), equality()])
    default: return equality()
    }
  }

  private mutating func range() -> Filter {
    let ops: [FieldFilter.Operator] = [.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
    return .field(FieldFilter(FieldPath(field: pick(schema.single)), pick(ops), scalar()))
  }

  private mutating func equality() -> Filter {
    if let list = schema.lists.first, chance(30) {
      return .field(FieldFilter(FieldPath(field: list), .arrayContains, scalar()))
    }
    return .field(FieldFilter(FieldPath(field: pick(schema.single)), .equal, scalar()))
  }
}

extension RandomSchema {
  /// Generates fields and a few values of which many are equal in their first 1,500 bytes. If the values are wide
  /// (`isWide`), the schema has only two fields, so that an entry of a composite index stays within its size limit.
  fileprivate static func long(seed: UInt64, _ random: inout SeededGenerator) -> RandomSchema {
    var source = RandomValues(seed: seed)
    let isWide = seed.isMultiple(of: 4)
    var values = (0..<Int.random(in: 3...9, using: &random)).map { _ in source.longValue(isWide: isWide) }
    // The two values of each pair below differ only beyond the 1,500 bytes at which an index entry truncates text. The
    // numbers after the text have the opposite order.
    let text = String(repeating: "x", count: 1_500)
    values += [.array([.string(text + "a"), 2]), .array([.string(text + "b"), 1])]
    values += [.map(["a": .string(text + "a"), "b": 2]), .map(["a": .string(text + "b"), "b": 1])]
    return RandomSchema(
      single: isWide ? ["a", "b"] : ["a", "b", "c"], maps: [], lists: isWide ? [] : ["tags"], values: values)
  }
}
