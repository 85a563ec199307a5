// Converts query parameters to fields of a request: `mask.fieldPaths=a&currentDocument.exists=true`.

import FirestoreModel

extension FirestoreJSON {
  /// A query parameter.
  struct Parameter: Sendable {
    let name: String
    let text: String
    fileprivate var path: ArraySlice<Substring>

    init(name: String, text: String) {
      self.name = name
      self.text = text
      path = name.split(separator: ".", omittingEmptySubsequences: false)[...]
    }
  }

  /// Writes the fields that parameters set.
  /// - Parameter bodyField: the field that the HTTP body contains; nil if there is none. A parameter that sets it is an
  ///   error.
  static func write(
    _ parameters: [Parameter], as name: MessageName, except bodyField: String? = nil,
    to writer: inout WireWriter
  ) throws(FirestoreError) {
    let schema = MessageSchema.of(name)
    var byField: [(field: MessageSchema.Field, parameters: [Parameter])] = []
    for parameter in parameters {
      guard let first = parameter.path.first, let index = schema.index(ofName: String(first)),
        schema.fields[index].name != bodyField
      else { throw unknownParameter(parameter) }
      let field = schema.fields[index]
      var rest = parameter
      rest.path = parameter.path.dropFirst()
      if let existing = byField.firstIndex(where: { $0.field.number == field.number }) {
        byField[existing].parameters.append(rest)
        continue
      }
      if let group = field.oneof, byField.contains(where: { $0.field.oneof == group }) {
        throw .invalidPayload(
          "Invalid value at '\(parameter.name)' (oneof), oneof field '\(group)' is already set. "
            + "Cannot set '\(field.jsonName)'")
      }
      byField.append((field, [rest]))
    }
    for (field, parameters) in byField { try write(parameters, field, to: &writer) }
  }

  private static func write(
    _ parameters: [Parameter], _ field: MessageSchema.Field, to writer: inout WireWriter
  ) throws(FirestoreError) {
    switch field.kind {
    case .message(let name):
      let open = writer.begin(field.number)
      try write(parameters, as: name, to: &writer)
      writer.end(open)
    case .list(let element):
      for parameter in parameters { try write(parameter, element, field.number, to: &writer) }
    default:
      guard let parameter = parameters.first, parameters.count == 1 else {
        throw .invalidPayload(
          "Invalid value at '\(parameters.first?.name ?? field.name)', the parameter is given more than once."
        )
      }
      try write(parameter, field.kind, field.number, to: &writer)
    }
  }

  private static func write(
    _ parameter: Parameter, _ kind: MessageSchema.Kind, _ number: Int, to writer: inout WireWriter
  ) throws(FirestoreError) {
    guard parameter.path.isEmpty else { throw unknownParameter(parameter) }
    guard JSONToken(parameter: parameter.text).write(kind, number, to: &writer) else {
      throw .invalidPayload(
        "Invalid value at '\(parameter.name)' (\(kind.description)), \"\(parameter.text.prefix(200))\"")
    }
  }

  private static func unknownParameter(_ parameter: Parameter) -> FirestoreError {
    let name = parameter.name.prefix(200)
    return .invalidPayload(
      "Invalid JSON payload received. Unknown name \"\(name)\": Cannot bind query parameter. "
        + "Field '\(name)' could not be found in request message.")
  }
}
