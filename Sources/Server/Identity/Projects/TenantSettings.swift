// The settings of a tenant: a separate set of accounts of a project, with separate sign-in methods.

package import JSON

/// The settings of one tenant.
package struct TenantSettings: Sendable, Equatable {
  package var id: String
  package var displayName: String?
  package var allowsPassword = false
  package var allowsEmailLink = false
  package var allowsAnonymous = false
  package var isDisabled = false
  package var multiFactor = MultiFactorSettings.disabled

  /// Creates a tenant without any sign-in method.
  package init(id: String) { self.id = id }

  /// A tenant with every sign-in method, as an emulator creates it on first use.
  package static func allowingAllMethods(_ id: String) -> TenantSettings {
    var tenant = TenantSettings(id: id)
    tenant.allowsPassword = true
    tenant.allowsEmailLink = true
    tenant.allowsAnonymous = true
    tenant.multiFactor = .phone
    return tenant
  }

  /// The JSON form of the API, without the resource name.
  package var json: JSONObject {
    var object: JSONObject = [
      "tenantId": .string(id), "allowPasswordSignup": .bool(allowsPassword),
      "enableEmailLinkSignin": .bool(allowsEmailLink), "enableAnonymousUser": .bool(allowsAnonymous),
      "disableAuth": .bool(isDisabled), "mfaConfig": .object(multiFactor.json),
    ]
    object.set("displayName", displayName)
    return object
  }

  var storedForm: JSONObject { json }

  init(storedForm object: JSONObject) {
    id = object["tenantId"]?.string ?? ""
    apply(object)
  }

  /// Sets every setting that an object in the form of the API has.
  package mutating func apply(_ object: JSONObject) {
    if let value = object["displayName"]?.string { displayName = value }
    if let value = object["allowPasswordSignup"]?.bool { allowsPassword = value }
    if let value = object["enableEmailLinkSignin"]?.bool { allowsEmailLink = value }
    if let value = object["enableAnonymousUser"]?.bool { allowsAnonymous = value }
    if let value = object["disableAuth"]?.bool { isDisabled = value }
    if let value = object["mfaConfig"]?.object { multiFactor = MultiFactorSettings(json: value) }
  }
}
