// What went wrong, in words.

const WORDS = {
  approvals_pending: () => "A tool call waits for your decision first. Approve it or do not allow it.",
  approval_mismatch: () => "This call has been decided already.",
  approval_not_resumable: () => "Nothing waits here any more.",
  connection_lost: () => "The connection was lost. You may send it again: it is answered once.",
  conversation_busy: ({ retry_after: seconds }) =>
    "Another message is being answered here, perhaps in another tab. " +
    `Send yours when that is done, at the latest in ${seconds} seconds.`,
  conversation_conflict: () => "The answer was stopped, or the conversation was changed meanwhile.",
  conversation_does_not_exist: () => "This conversation has been deleted.",
  forbidden: () => "Your session has changed. Load the page again.",
  internal_error: () => "Something went wrong. Please try again.",
  provider_error: () => "The model gave no usable answer. Please try again.",
  provider_refused: () => "The model did not take this message.",
  provider_unavailable: () => "The model cannot be reached. Please try again in a moment.",
  signed_out: () => "You have been signed out. Load the page again.",
  stopped: () => "Stopped. What was not finished is not kept.",
  too_large: ({ file }) =>
    file ? `“${file}” is too large.` : "This message is too large. Leave something out.",
  turn_failed: () => "This message was answered before, and that failed. Please send it again.",
  turn_not_saved: () => "The answer could not be stored. Please try again.",
  unsupported_attachment: ({ file }) =>
    file
      ? `“${file}” cannot be sent: attach images, PDFs and text files.`
      : "The model cannot read one of these files.",
};

export function words(error) {
  return WORDS[error.code]?.(error) ?? error.error ?? WORDS.internal_error();
}
