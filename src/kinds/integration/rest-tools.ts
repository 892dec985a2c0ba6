/** Tools of the MCP servers of third-party services: for each service the few API calls that agents need. */
import { integer, list, map, text } from "../../lib/mcp/tool.ts";
import type { RestTool } from "./rest-tool.ts";

const GET = "GET";
const POST = "POST";

const driveFile = { fileId: text("Id of the file") };
export const GOOGLE_DRIVE: RestTool[] = [
  {
    name: "searchFiles",
    description: "Find files in Google Drive.",
    method: GET,
    path: "/files",
    query: { fields: "nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink)" },
    properties: {
      q: text("Search, such as: name contains 'report' and trashed = false"),
      pageSize: integer("At most 1000; default 100"),
      pageToken: text("From the answer before"),
    },
  },
  {
    name: "getFile",
    description: "Read what is known about a file.",
    method: GET,
    path: "/files/{fileId}",
    query: { fields: "*" },
    properties: driveFile,
    required: ["fileId"],
  },
  {
    name: "readFile",
    description: "Read the content of a text file.",
    method: GET,
    path: "/files/{fileId}",
    query: { alt: "media" },
    properties: driveFile,
    required: ["fileId"],
  },
  {
    name: "exportFile",
    description: "Read a Google document in another format.",
    method: GET,
    path: "/files/{fileId}/export",
    properties: { ...driveFile, mimeType: text("Such as text/plain or text/csv") },
    required: ["fileId", "mimeType"],
  },
];

const calendar = { calendarId: text("Id of the calendar; 'primary' is the user's own") };
export const GOOGLE_CALENDAR: RestTool[] = [
  {
    name: "listEvents",
    description: "List events of a calendar.",
    method: GET,
    path: "/calendars/{calendarId}/events",
    query: { singleEvents: "true", orderBy: "startTime" },
    properties: {
      ...calendar,
      timeMin: text("RFC 3339 time from which on"),
      timeMax: text("RFC 3339 time until which"),
      q: text("Words to search for"),
      maxResults: integer("At most 2500; default 250"),
    },
    required: ["calendarId"],
  },
  {
    name: "createEvent",
    description: "Add an event to a calendar.",
    method: POST,
    path: "/calendars/{calendarId}/events",
    properties: {
      ...calendar,
      summary: text("Title"),
      description: text("More about it"),
      start: map("{ dateTime, timeZone } or { date }"),
      end: map("{ dateTime, timeZone } or { date }"),
      attendees: list("People, each { email }", { items: { type: "object" } }),
    },
    required: ["calendarId", "summary", "start", "end"],
  },
];

const range = { spreadsheetId: text("Id of the spreadsheet"), range: text("In A1 notation, such as Sheet1!A1:C10") };
export const GOOGLE_SHEETS: RestTool[] = [
  {
    name: "readRange",
    description: "Read cells of a spreadsheet.",
    method: GET,
    path: "/spreadsheets/{spreadsheetId}/values/{range}",
    properties: range,
    required: ["spreadsheetId", "range"],
  },
  {
    name: "writeRange",
    description: "Replace cells of a spreadsheet.",
    method: "PUT",
    path: "/spreadsheets/{spreadsheetId}/values/{range}",
    query: { valueInputOption: "USER_ENTERED" },
    properties: { ...range, values: list("Rows, each a list of cells", { items: { type: "array" } }) },
    required: ["spreadsheetId", "range", "values"],
  },
];

export const GMAIL: RestTool[] = [
  {
    name: "searchMessages",
    description: "Find messages; answers with their ids.",
    method: GET,
    path: "/users/me/messages",
    properties: { q: text("As in the search field of Gmail"), maxResults: integer("At most 500; default 100") },
  },
  {
    name: "readMessage",
    description: "Read a message.",
    method: GET,
    path: "/users/me/messages/{id}",
    properties: { id: text("Id of the message") },
    required: ["id"],
  },
  {
    name: "sendMessage",
    description: "Send a message.",
    method: POST,
    path: "/users/me/messages/send",
    properties: { raw: text("The whole message (RFC 5322) in base64url") },
    required: ["raw"],
  },
];

export const OUTLOOK: RestTool[] = [
  {
    name: "listMessages",
    description: "List messages, newest first.",
    method: GET,
    path: "/me/messages",
    query: { $select: "id,subject,from,receivedDateTime,bodyPreview" },
    properties: { $search: text("Words to search for, in double quotes"), $top: integer("At most 1000; default 10") },
  },
  {
    name: "readMessage",
    description: "Read a message.",
    method: GET,
    path: "/me/messages/{id}",
    properties: { id: text("Id of the message") },
    required: ["id"],
  },
  {
    name: "sendMail",
    description: "Send a message.",
    method: POST,
    path: "/me/sendMail",
    properties: {
      message: map("{ subject, body: { contentType, content }, toRecipients: [{ emailAddress: { address } }] }"),
    },
    required: ["message"],
  },
];

export const ONEDRIVE: RestTool[] = [
  {
    name: "searchFiles",
    description: "Find files in OneDrive.",
    method: GET,
    path: "/me/drive/root/search(q='{query}')",
    properties: { query: text("Words to search for") },
    required: ["query"],
  },
  {
    name: "listFolder",
    description: "List a folder.",
    method: GET,
    path: "/me/drive/items/{id}/children",
    properties: { id: text("Id of the folder; 'root' is the first") },
    required: ["id"],
  },
  {
    name: "getItem",
    description: "Read what is known about a file or folder.",
    method: GET,
    path: "/me/drive/items/{id}",
    properties: { id: text("Id of the item") },
    required: ["id"],
  },
];

export const DROPBOX: RestTool[] = [
  {
    name: "searchFiles",
    description: "Find files in Dropbox.",
    method: POST,
    path: "/files/search_v2",
    properties: { query: text("Words to search for") },
    required: ["query"],
  },
  {
    name: "listFolder",
    description: "List a folder.",
    method: POST,
    path: "/files/list_folder",
    properties: { path: text("Path of the folder; empty for the first") },
    required: ["path"],
  },
];

export const HUBSPOT: RestTool[] = [
  {
    name: "searchContacts",
    description: "Find contacts.",
    method: POST,
    path: "/crm/v3/objects/contacts/search",
    properties: { query: text("Words to search for"), limit: integer("At most 100; default 10") },
    required: ["query"],
  },
  {
    name: "getContact",
    description: "Read a contact.",
    method: GET,
    path: "/crm/v3/objects/contacts/{id}",
    properties: { id: text("Id of the contact") },
    required: ["id"],
  },
];

export const SALESFORCE: RestTool[] = [
  {
    name: "query",
    description: "Run a SOQL query.",
    method: GET,
    path: "/services/data/v62.0/query",
    properties: { q: text("SOQL, such as: SELECT Id, Name FROM Account LIMIT 10") },
    required: ["q"],
  },
];

const repository = { owner: text("User or organisation"), repo: text("Name of the repository") };
export const GITHUB: RestTool[] = [
  {
    name: "searchRepositories",
    description: "Find repositories.",
    method: GET,
    path: "/search/repositories",
    properties: { q: text("Search, such as: language:typescript mcp"), per_page: integer("At most 100; default 30") },
    required: ["q"],
  },
  {
    name: "listIssues",
    description: "List issues and pull requests of a repository.",
    method: GET,
    path: "/repos/{owner}/{repo}/issues",
    properties: {
      ...repository,
      state: text("open (default), closed or all"),
      per_page: integer("At most 100; default 30"),
    },
    required: ["owner", "repo"],
  },
  {
    name: "createIssue",
    description: "Open an issue.",
    method: POST,
    path: "/repos/{owner}/{repo}/issues",
    properties: { ...repository, title: text("Title"), body: text("Text in Markdown") },
    required: ["owner", "repo", "title"],
  },
  {
    name: "getReadme",
    description: "Read the README of a repository (its content is base64).",
    method: GET,
    path: "/repos/{owner}/{repo}/readme",
    properties: repository,
    required: ["owner", "repo"],
  },
];

export const SLACK: RestTool[] = [
  {
    name: "listChannels",
    description: "List channels.",
    method: GET,
    path: "/conversations.list",
    properties: { limit: integer("At most 1000; default 100"), cursor: text("From the answer before") },
  },
  {
    name: "readMessages",
    description: "Read the latest messages of a channel.",
    method: GET,
    path: "/conversations.history",
    properties: { channel: text("Id of the channel"), limit: integer("At most 999; default 100") },
    required: ["channel"],
  },
  {
    name: "postMessage",
    description: "Post a message.",
    method: POST,
    path: "/chat.postMessage",
    properties: { channel: text("Id or name of the channel"), text: text("The message") },
    required: ["channel", "text"],
  },
];

export const NOTION: RestTool[] = [
  {
    name: "search",
    description: "Find pages and databases.",
    method: POST,
    path: "/search",
    properties: { query: text("Words to search for"), page_size: integer("At most 100") },
  },
  {
    name: "readBlocks",
    description: "Read the content of a page or block.",
    method: GET,
    path: "/blocks/{id}/children",
    properties: { id: text("Id of the page or block") },
    required: ["id"],
  },
];

export const LINEAR: RestTool[] = [
  {
    name: "graphql",
    description: "Run a GraphQL query or mutation.",
    method: POST,
    path: "/graphql",
    properties: { query: text("The query"), variables: map("Its variables") },
    required: ["query"],
  },
];
