// The settings of a project's authentication: sign-in methods, e-mail privacy, second factors and blocking functions.

package import JSON

/// The settings of one project.
package struct ProjectSettings: Sendable, Equatable {
  /// An event at which a function of the project can change or reject a user.
  package enum BlockingEvent: String, Sendable, CaseIterable {
    case beforeCreate
    case beforeSignIn
  }

  /// Whether several accounts may have the same address at their providers.
  package var allowsDuplicateEmails = false
  /// Whether responses hide which addresses have accounts. Nil for the default of the server's mode: production hides
  /// it, an emulator does not.
  package var hidesAccounts: Bool?
  package var multiFactor: MultiFactorSettings?
  /// The URLs of blocking functions.
  package var blockingFunctions: [BlockingEvent: String] = [:]
  /// The `blockingFunctions` member as the administrator set it. Responses repeat it.
  package var blockingFunctionsJSON = JSONObject()
  /// Whether users can sign up and sign in without credentials. Nil for the default: allowed.
  package var allowsAnonymous: Bool?
  /// Whether users can sign up and sign in with a password. Nil for the default: allowed.
  package var allowsPassword: Bool?
  /// Whether users can sign in with a link in an e-mail. Nil for the default: allowed.
  package var allowsEmailLink: Bool?
  /// The API keys that clients must send. Empty if any key is accepted.
  package var apiKeys: [String] = []

  /// Creates the default settings.
  package init() {}

  var storedForm: JSONObject {
    var object: JSONObject = ["allowDuplicateEmails": .bool(allowsDuplicateEmails)]
    object.set("enableImprovedEmailPrivacy", hidesAccounts)
    object.set("anonymous", allowsAnonymous)
    object.set("password", allowsPassword)
    object.set("emailLink", allowsEmailLink)
    if let multiFactor { object["mfa"] = .object(multiFactor.json) }
    object["blockingFunctions"] = .object(blockingFunctionsJSON)
    if !apiKeys.isEmpty { object["apiKeys"] = .array(apiKeys.map { .string($0) }) }
    return object
  }

  init(storedForm object: JSONObject) {
    allowsDuplicateEmails = object["allowDuplicateEmails"]?.bool ?? false
    hidesAccounts = object["enableImprovedEmailPrivacy"]?.bool
    allowsAnonymous = object["anonymous"]?.bool
    allowsPassword = object["password"]?.bool
    allowsEmailLink = object["emailLink"]?.bool
    multiFactor = (object["mfa"]?.object).map { MultiFactorSettings(json: $0) }
    apiKeys = (object["apiKeys"]?.array ?? []).compactMap(\.string)
    setBlockingFunctions(object["blockingFunctions"]?.object ?? [:])
  }

  /// Sets the blocking functions from the JSON form of the API, which the caller has validated.
  package mutating func setBlockingFunctions(_ json: JSONObject) {
    blockingFunctionsJSON = json
    blockingFunctions = [:]
    for event in BlockingEvent.allCases {
      let trigger = json["triggers"]?.object?[event.rawValue]
      if let uri = trigger?["functionUri"]?.string { blockingFunctions[event] = uri }
    }
  }
}
