// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {Refusing} from "../support/HostileTokens.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Swaps, quotes and fees, on a curve of 15 knots of 0.819 base per side at 3000.01 and up, 2999.99 and down.
contract EntrypointTest is Platform {
    function setUp() public override {
        super.setUp();
        _postDefault();
    }

    /* SWAPS, to the unit */

    function test_BuyExactIn() external {
        // 0.4 base at 3000.01 in the first knot is 1200.004.
        _expectSwap(true, STRANGER, 1, 0.4e18, 1200.004e6, 0, 0);
        vm.prank(TAKER);
        uint256 out = entrypoint.swap(address(quote), address(base), 1200.004e6, 0.4e18, STRANGER, START);
        assertEq(out, 0.4e18, "out");
        _expectMoved(true, STRANGER, 1200.004e6, 0.4e18);
        // The next one starts where it ended.
        _expectSwap(true, STRANGER, 2, 0.4e18, 1200.004e6, 0, 0.4e18);
        vm.prank(TAKER);
        entrypoint.swap(address(quote), address(base), 1200.004e6, 0, STRANGER, START);
    }

    function test_SellExactIn() external {
        // 0.819 at 2999.99 and 0.181 at 2999.985: 2999.989095 quote.
        _expectSwap(false, STRANGER, 1, 1e18, 2999.989095e6, 0, 0);
        vm.prank(TAKER);
        uint256 out = entrypoint.swap(address(base), address(quote), 1e18, 2999.989095e6, STRANGER, START);
        assertEq(out, 2999.989095e6, "out");
        _expectMoved(false, STRANGER, 1e18, 2999.989095e6);
    }

    function test_BuyExactOut() external {
        // 1 wei costs a unit.
        _expectSwap(true, TAKER, 1, 1, 1, 0, 0);
        assertEq(_swapExactOutput(true, 1), 1, "rounded up");
        // 0.819 at 3000.01 and 0.181 at 3000.015: 3000.010905 from the start, one wei less here and at the same price.
        assertEq(_swapExactOutput(true, 1e18 - 1), 3000.010905e6, "in");
    }

    function test_SellExactOut() external {
        // 1 / (2999.99 x 10^6) x 10^18 base, rounded up.
        _expectSwap(false, STRANGER, 1, 333334445, 1, 0, 0);
        vm.prank(TAKER);
        uint256 paid = entrypoint.swapExactOutput(address(base), address(quote), 1, 333334445, STRANGER, START);
        assertEq(paid, 333334445, "in");
        _expectMoved(false, STRANGER, 333334445, 1);
    }

    function test_AmountInSitsAtOffset68() external view {
        bytes memory data = abi.encodeCall(
            entrypoint.swap,
            (address(base), address(quote), 0x1122334455, 7, TAKER, START)
        );
        uint256 word;
        assembly ("memory-safe") {
            word := mload(add(add(data, 32), 68))
        }
        assertEq(word, 0x1122334455, "amountIn");
    }

    /* LIMITS */

    function test_RevertWhen_DeadlineHasPassed() external {
        bytes memory passed = abi.encodeWithSelector(IEntrypoint.DeadlinePassed.selector, START - 1);
        vm.startPrank(TAKER);
        vm.expectRevert(passed);
        entrypoint.swap(address(quote), address(base), 1e6, 0, TAKER, START - 1);
        vm.expectRevert(passed);
        entrypoint.swapExactOutput(address(quote), address(base), 1e6, 1e6, TAKER, START - 1);
        entrypoint.swap(address(quote), address(base), 1e6, 0, TAKER, START);
    }

    function test_RevertWhen_OutputIsBelowTheLimit() external {
        vm.startPrank(TAKER);
        vm.expectRevert(
            abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, uint256(0.4e18), uint256(0.4e18 + 1))
        );
        entrypoint.swap(address(quote), address(base), 1200.004e6, 0.4e18 + 1, TAKER, START);
    }

    function test_RevertWhen_InputIsAboveTheLimit() external {
        vm.startPrank(TAKER);
        vm.expectRevert(
            abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, uint256(1200.004e6), uint256(1200.004e6 - 1))
        );
        entrypoint.swapExactOutput(address(quote), address(base), 0.4e18, 1200.004e6 - 1, TAKER, START);
        entrypoint.swapExactOutput(address(quote), address(base), 0.4e18, 1200.004e6, TAKER, START);
    }

    function test_RevertWhen_RecipientIsForbidden() external {
        address[] memory bad = _forbiddenRecipients();
        vm.startPrank(TAKER);
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory forbidden = abi.encodeWithSelector(IEntrypoint.ForbiddenRecipient.selector, bad[i]);
            vm.expectRevert(forbidden);
            entrypoint.swap(address(quote), address(base), 1e6, 0, bad[i], START);
            vm.expectRevert(forbidden);
            entrypoint.swapExactOutput(address(quote), address(base), 1e6, 1e6, bad[i], START);
        }
    }

    function test_RevertWhen_NotApproved() external {
        base.mint(STRANGER, 1e18);
        vm.prank(STRANGER);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(entrypoint), 0, 1e18)
        );
        entrypoint.swap(address(base), address(quote), 1e18, 0, STRANGER, START);
    }

    /* WHAT THE MARKET REFUSES, and the quote of it */

    function test_RevertWhen_AmountIsZero() external {
        _expectRefused(true, 0, abi.encodeWithSelector(ICurveBook.ZeroAmount.selector), true);
        _expectRefused(false, 0, abi.encodeWithSelector(ICurveBook.ZeroAmount.selector), true);
    }

    function test_RevertWhen_AmountIsAbsurd() external {
        uint256[4] memory amounts = [uint256(1) << 100, uint256(1) << 128, uint256(1) << 200, type(uint256).max];
        for (uint256 i = 0; i < amounts.length; ++i) {
            bytes memory tooLarge = abi.encodeWithSelector(
                ICurveBook.AmountTooLarge.selector,
                amounts[i],
                (uint256(1) << 100) - 1
            );
            _expectRefused(true, amounts[i], tooLarge, true);
            _expectRefused(false, amounts[i], tooLarge, true);
        }
        _setFee(10_000);
        for (uint256 i = 0; i < amounts.length; ++i) {
            bytes memory tooLarge = abi.encodeWithSelector(
                ICurveBook.AmountTooLarge.selector,
                amounts[i],
                (uint256(1) << 100) - 1
            );
            _expectRefused(true, amounts[i], tooLarge, true);
            assertEq(entrypoint.quoteFor(TAKER, address(quote), address(base), amounts[i]), 0, "quoteFor");
        }
    }

    function test_RevertWhen_DepthRunsOut() external {
        uint256 depth = 15 * 0.819e18;
        // Prices 2999.99 and fourteen steps of half a tick below.
        uint256 yield = 0.819e6 * 15 * 2999.99 - 0.819e6 * 0.005 * 105;
        bytes4 depthError = ICurveBook.InsufficientDepth.selector;
        _expectRefused(false, depth + 1, abi.encodeWithSelector(depthError, depth + 1, depth), false);
        _expectRefusedOut(true, depth + 1, abi.encodeWithSelector(depthError, depth + 1, depth));
        _expectRefusedOut(false, yield + 1, abi.encodeWithSelector(depthError, yield + 1, yield));
        uint256 price = yield + 0.02 * 0.819e6 * 15 + 2 * 0.819e6 * 0.005 * 105;
        _expectRefused(true, price + 1, abi.encodeWithSelector(depthError, price + 1, price), false);
        assertEq(_swap(true, price), depth, "all asks");
        assertEq(_swapExactOutput(false, yield), depth, "all bids");
    }

    function test_RevertWhen_OutputRoundsToZero() external {
        // 2999.99 quote units are 10^12 base units, so 333334444 of those are worth less than one.
        _expectRefused(false, 333334444, abi.encodeWithSelector(ICurveBook.ZeroOutput.selector, 333334444), false);
        assertEq(_quote(false, 333334445), 1, "one more is not");
    }

    function test_RevertWhen_CurveHasExpired() external {
        vm.warp(START + MAX_TTL_SEC - 1);
        assertLe(1, _quote(true, 1e6), "the last second");
        vm.warp(START + MAX_TTL_SEC);
        bytes memory expired = abi.encodeWithSelector(ICurveBook.CurveExpired.selector, market, START + MAX_TTL_SEC);
        _expectRefused(true, 1e6, expired, true);
        _expectRefused(false, 1e18, expired, true);
    }

    function test_RevertWhen_CurveIsEmpty() external {
        _post(_fresh(new uint256[](0), new uint256[](0)));
        bytes4 depthError = ICurveBook.InsufficientDepth.selector;
        _expectRefused(true, 1e6, abi.encodeWithSelector(depthError, 1e6, 0), true);
        _expectRefused(false, 1e18, abi.encodeWithSelector(depthError, 1e18, 0), true);
    }

    function test_RevertWhen_PairIsUnknown() external {
        address[2][4] memory pairs = [
            [address(base), address(base)],
            [address(base), STRANGER],
            [address(0), address(0)],
            [address(quote), address(custodian)]
        ];
        for (uint256 i = 0; i < pairs.length; ++i) {
            (address a, address b) = (pairs[i][0], pairs[i][1]);
            bytes32 id = keccak256(a < b ? abi.encodePacked(a, b) : abi.encodePacked(b, a));
            assertEq(entrypoint.quote(a, b, 1e6), 0, "quote");
            assertEq(entrypoint.quoteExactOutput(a, b, 1e6), 0, "quoteExactOutput");
            assertEq(entrypoint.quoteFor(TAKER, a, b, 1e6), 0, "quoteFor");
            vm.prank(TAKER);
            vm.expectRevert(abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, id));
            entrypoint.swap(a, b, 1e6, 0, TAKER, START);
        }
    }

    function test_RevertWhen_VaultCannotPay() external {
        uint256 held = base.balanceOf(address(custodian));
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(base), held - 1e18, 0);
        bytes4 unfunded = ICustodian.InsufficientLiquidity.selector;
        _expectRefusedOut(true, 1e18 + 1, abi.encodeWithSelector(unfunded, address(base), 1e18 + 1, 1e18));
        uint256 price = _quoteExactOutput(true, 1e18);
        assertLe(1, price, "exactly what is free");
        assertEq(_quote(true, price + 3000), 0, "exact-in above it");
        assertEq(_swapExactOutput(true, 1e18), price, "pays it out");
        assertEq(_quoteExactOutput(true, 1), 0, "nothing left");
        assertEq(base.balanceOf(address(custodian)), held - 1e18, "the claim is whole");
    }

    /// @dev `preview` is of the curve alone: what the vault could pay limits quotes and `previewSwap`, never it.
    function test_PreviewDisregardsTheVault() external {
        (address tokenIn, address tokenOut) = _pair(true);
        (uint256 paid, uint256 out) = book.preview(tokenIn, tokenOut, 2e18, true);
        assertEq(_quoteExactOutput(true, 2e18), paid, "while the vault can pay");
        uint256 held = base.balanceOf(address(custodian));
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(base), held - 1e18, 0);
        assertEq(_quoteExactOutput(true, 2e18), 0, "exact output");
        assertEq(_quote(true, paid), 0, "exact input");
        (uint256 stillPaid, uint256 stillOut) = book.preview(tokenIn, tokenOut, 2e18, true);
        assertEq(stillPaid, paid, "paid");
        assertEq(stillOut, out, "of the curve");
        (, stillOut) = book.preview(tokenIn, tokenOut, paid, false);
        assertLe(2e18, stillOut, "of the curve, exact input");
    }

    /* FEES */

    function test_FeeStaysInTheVaultAndInTheOutputToken() external {
        _setFee(500);
        uint256 held = base.balanceOf(address(custodian));
        _expectSwap(true, STRANGER, 1, 0.4e18, 1200.004e6, 0.0002e18, 0);
        vm.prank(TAKER);
        uint256 out = entrypoint.swap(address(quote), address(base), 1200.004e6, 0.3998e18, STRANGER, START);
        assertEq(out, 0.3998e18, "net");
        assertEq(base.balanceOf(STRANGER), 0.3998e18, "received");
        assertEq(base.balanceOf(address(custodian)), held - 0.3998e18, "kept");
        assertEq(entrypoint.quoteFor(TAKER, address(quote), address(base), 1e6), _netOf(_quote(true, 1e6), 500), "net");
        assertEq(entrypoint.quoteFor(STRANGER, address(quote), address(base), 1e6), _quote(true, 1e6), "no fee");
    }

    function test_LimitIsNetOfTheFee() external {
        _setFee(500);
        vm.prank(TAKER);
        vm.expectRevert(
            abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, uint256(0.3998e18), uint256(0.3998e18 + 1))
        );
        entrypoint.swap(address(quote), address(base), 1200.004e6, 0.3998e18 + 1, TAKER, START);
    }

    function testFuzz_ExactOutputDeliversExactlyNet(uint256 amount, uint256 rate, bool isBuy) external {
        rate = bound(rate, 0, 10_000);
        amount = bound(amount, 1, isBuy ? 10e18 : 30_000e6);
        _setFee(rate);
        (address tokenIn, address tokenOut) = _pair(isBuy);
        vm.recordLogs();
        vm.prank(TAKER);
        uint256 amountIn = entrypoint.swapExactOutput(tokenIn, tokenOut, amount, type(uint256).max, STRANGER, START);
        assertEq(isBuy ? base.balanceOf(STRANGER) : quote.balanceOf(STRANGER), amount, "delivered");
        (uint256 gross, uint256 fee) = _lastGrossAndFee(isBuy);
        assertEq(gross - fee, amount, "net");
        assertEq(fee, (gross * rate) / 1e6, "fee");
        assertLe(gross - 1 - ((gross - 1) * rate) / 1e6 + 1, amount, "smallest gross");
        // The same trade quoted: a fresh curve of the same words.
        _post(_fresh(_ladder(600_002, 15), _ladder(599_998, 15)));
        assertEq(_quoteExactOutput(isBuy, gross), amountIn, "quoted gross");
    }

    /// @dev A fee is sold by makers like the rest of the output, so free liquidity has to cover it too, as the quote says.
    function test_RevertWhen_OnlyTheNetOutputIsCovered() external {
        _setFee(10_000);
        uint256 held = base.balanceOf(address(custodian));
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(base), held - 0.4e18 + 1, 0);
        assertEq(_quote(true, 1200.004e6), 0, "quote");
        vm.prank(TAKER);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICustodian.InsufficientLiquidity.selector,
                address(base),
                uint256(0.4e18),
                uint256(0.4e18 - 1)
            )
        );
        entrypoint.swap(address(quote), address(base), 1200.004e6, 0, TAKER, START);
    }

    /// @dev A rate alone charges nothing, in either mode and in no quote; nor do the fees of a market without a rate.
    function test_FeeNeedsARateAndAMarketThatChargesIt() external {
        (address tokenIn, address tokenOut) = _pair(true);
        for (uint256 i = 0; i < 2; ++i) {
            vm.startPrank(OWNER);
            entrypoint.setTakerFee(TAKER, i == 0 ? 10_000 : 0);
            book.setTakerFees(market, i == 1);
            vm.stopPrank();
            uint256 quoted = _quote(true, 1000e6);
            assertEq(entrypoint.quoteFor(TAKER, tokenIn, tokenOut, 1000e6), quoted, "net quote");
            vm.recordLogs();
            assertEq(_swap(true, 1000e6), quoted, "exact input");
            assertEq(_lastSwap().fee, 0, "fee of exact input");
            uint256 price = _quoteExactOutput(true, 0.1e18);
            vm.recordLogs();
            assertEq(_swapExactOutput(true, 0.1e18), price, "exact output");
            assertEq(_lastSwap().fee, 0, "fee of exact output");
        }
    }

    function test_QuotesAnswerOneWord() external view {
        (, bytes memory answer) = address(entrypoint).staticcall(
            abi.encodeCall(IEntrypoint.quote, (address(quote), address(base), 1200.004e6))
        );
        assertEq(keccak256(answer), keccak256(abi.encode(0.4e18)), "amountOut");
    }

    /// @dev A book that fails, or answers something else, is not ours; what it says comes through.
    function test_RevertWhen_TheBookIsAnother() external {
        bytes[2] memory codes = [address(new Refusing()).code, hex"00"];
        bytes[2] memory reasons = [abi.encode(1, 2, 3), bytes("")];
        bytes[2] memory calls = [
            abi.encodeCall(IEntrypoint.quote, (address(quote), address(base), 1e6)),
            abi.encodeCall(IEntrypoint.swap, (address(quote), address(base), 1e6, 0, TAKER, START))
        ];
        for (uint256 i = 0; i < 4; ++i) {
            vm.etch(address(book), codes[i / 2]);
            vm.prank(TAKER);
            (bool done, bytes memory reason) = address(entrypoint).call(calls[i % 2]);
            assertTrue(!done, "refused");
            assertEq(keccak256(reason), keccak256(reasons[i / 2]), "reason");
        }
    }

    function test_SetTakerFee() external {
        vm.expectEmit(address(entrypoint));
        emit IEntrypoint.TakerFeeSet(STRANGER, 10_000);
        vm.prank(OWNER);
        entrypoint.setTakerFee(STRANGER, 10_000);
        assertEq(entrypoint.takerFee(STRANGER), 10_000, "rate");
        assertEq(entrypoint.takerFee(TAKER), 0, "nobody else's");
    }

    function test_RevertWhen_FeeIsTooHigh() external {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.FeeTooHigh.selector, 10_001, 10_000));
        entrypoint.setTakerFee(TAKER, 10_001);
    }

    function test_RevertWhen_FeeSetterIsNotTheOwner() external {
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(OwnableUpgradeable.OwnableUnauthorizedAccount.selector, TAKER));
        entrypoint.setTakerFee(TAKER, 0);
    }

    function test_RevertWhen_CollectingAFeeWithoutTheSettler() external {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.NotSettler.selector, OWNER));
        IOrderSettler.Delivery memory delivery;
        entrypoint.collectInputFee(delivery);
    }

    function test_NothingIsLockedBetweenTransactions() external {
        _swap(true, 1000e6);
        assertTrue(!entrypoint.isLocked() && !custodian.isLocked(), "unlocked");
    }

    function test_SetTakerFees() external {
        vm.expectEmit(address(book));
        emit ICurveBook.TakerFeesSet(market, true);
        vm.prank(OWNER);
        book.setTakerFees(market, true);
        assertTrue(book.chargesFees(address(quote), address(base)), "charged");
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(OwnableUpgradeable.OwnableUnauthorizedAccount.selector, TAKER));
        book.setTakerFees(market, false);
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, bytes32(0)));
        book.setTakerFees(bytes32(0), true);
    }

    function test_RevertWhen_ConsumingWithoutTheEntrypoint() external {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.NotEntrypoint.selector, OWNER));
        book.consume(ICurveBook.Request(1, address(base), false, address(quote)));
    }

    /* HELPERS */

    function _netOf(uint256 gross, uint256 rate) private pure returns (uint256) {
        return gross - (gross * rate) / 1e6;
    }

    function _lastGrossAndFee(bool isBuy) private returns (uint256 gross, uint256 fee) {
        SwapLog memory log = _lastSwap();
        return (isBuy ? log.baseAmount : log.quoteAmount, log.fee);
    }

    function _expectSwap(
        bool isBuy,
        address recipient,
        uint256 fillSeq,
        uint256 baseAmount,
        uint256 quoteAmount,
        uint256 fee,
        uint256 consumedBefore
    ) private {
        vm.expectEmit(address(entrypoint));
        emit IEntrypoint.Swap(
            market,
            TAKER,
            recipient,
            fillSeq,
            1,
            isBuy,
            baseAmount,
            quoteAmount,
            fee,
            0,
            consumedBefore
        );
    }

    /// @dev After the first swap of a test: the vault, the taker and the recipient hold what they should.
    function _expectMoved(bool isBuy, address recipient, uint256 amountIn, uint256 amountOut) private view {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        assertEq(_balance(tokenIn, TAKER), 10 ** 30 - amountIn, "taker paid");
        assertEq(_balance(tokenIn, address(custodian)), 10 ** 30 + amountIn, "vault got");
        assertEq(_balance(tokenOut, address(custodian)), 10 ** 30 - amountOut, "vault paid");
        assertEq(_balance(tokenOut, recipient), amountOut, "recipient got");
        assertEq(
            _balance(tokenIn, address(entrypoint)) + _balance(tokenOut, address(entrypoint)),
            0,
            "nothing between"
        );
    }

    function _balance(address token, address account) private view returns (uint256) {
        return token == address(base) ? base.balanceOf(account) : quote.balanceOf(account);
    }

    /// @dev An exact-in swap reverts as `expected` and its quote is zero; so do exact-out ones if `both`.
    function _expectRefused(bool isBuy, uint256 amount, bytes memory expected, bool both) private {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        assertEq(_quote(isBuy, amount), 0, "quote");
        assertEq(entrypoint.quoteFor(TAKER, tokenIn, tokenOut, amount), 0, "quoteFor");
        vm.prank(TAKER);
        vm.expectRevert(expected);
        entrypoint.swap(tokenIn, tokenOut, amount, 0, TAKER, block.timestamp);
        if (both) _expectRefusedOut(isBuy, amount, expected);
    }

    function _expectRefusedOut(bool isBuy, uint256 amount, bytes memory expected) private {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        assertEq(_quoteExactOutput(isBuy, amount), 0, "quoteExactOutput");
        vm.prank(TAKER);
        vm.expectRevert(expected);
        entrypoint.swapExactOutput(tokenIn, tokenOut, amount, type(uint256).max, TAKER, block.timestamp);
    }
}
